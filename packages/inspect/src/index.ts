/** The entry of @rocev2/inspect. */

export { Audit, type AuditReport } from './audit/audit.js';
export type { Finding } from './audit/ledger.js';
export type { MeasureName } from './audit/measures.js';
