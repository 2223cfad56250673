/**
 * `@rocev2/inspect`: checks a capture of any NIC or switch against the rules of RoCEv2. See docs/conformance.md.
 *
 * @module @rocev2/inspect
 */

export { type CaptureDamage, type CapturedPacket, CaptureStream } from 'rocev2/internal/capture';
export { Audit, type AuditedPackets, type AuditOptions, type AuditReport } from './audit/audit.js';
export type { DistributionSummary } from './audit/distribution.js';
export type { Finding, RuleResult, Verdict } from './audit/ledger.js';
export type { Choice, Measure, MeasureName, MeasureUnit } from './audit/measures.js';
export type { RuleListener } from './audit/rule-reporter.js';
