/**
 * What the other packages of this repository use of @rocev2/inspect, besides its public entry. It changes without
 * notice.
 */

export { printReport } from './commands/audit/audit-lines.js';
