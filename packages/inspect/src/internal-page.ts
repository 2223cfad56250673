/** What pages and reports of this repository use of the audit, and ladders of captures. It changes without notice. */

export { ruleOf } from './audit/catalogue.js';
export { OVERVIEW_TEXTS, overviewOf } from './audit/overview.js';
export type { Severity } from './audit/rule.js';
export { laddersOf } from './ladder/ladder.js';
export { CapturePackets, readCapture } from './ladder/read-capture.js';
export { readTraceFile } from './ladder/read-trace.js';
export { type PacketCells, packetCells } from './packet-cells.js';
