/** The entry of @rocev2/inspect. */

export { Audit, type AuditReport } from './audit/audit.js';
export type { Finding } from './audit/ledger.js';
export type { MeasureName } from './audit/measures.js';
export { printReport } from './commands/audit/audit-lines.js';
export type { ConformMatrixResult } from './commands/conform/matrix.js';
export type { ConformRunResult } from './commands/conform/result.js';
export type { ConformServeResult } from './commands/conform/serve.js';
export type { Examination } from './commands/doctor/examine.js';
export type { OpenedPackets } from './commands/protected-capture.js';
export type { Need } from './conform/step.js';
