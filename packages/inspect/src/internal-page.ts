/** What the page of this repository uses of the audit, besides the public entry. It changes without notice. */

export { ruleOf } from './audit/catalogue.js';
export type { Severity } from './audit/rule.js';
export { type PacketCells, packetCells } from './packet-cells.js';
