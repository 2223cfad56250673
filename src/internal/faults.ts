/**
 * Internals of faults that the packages of this repository use. No part of the public API: it changes without notice.
 */

export { drop } from '../port/faults/actions/drop.js';
export {
  changePacket,
  type FaultAction,
  type FaultCounters,
  newFaultCounters,
  type RunningAction,
} from '../port/faults/actions.js';
export { Delayed } from '../port/faults/delayed.js';
export type { FaultActionKind, FaultFate } from '../port/faults/fault-action.js';
export { FaultPlan, type FaultRuleHits, type FaultVerdict } from '../port/faults/fault-plan.js';
export { type FaultSubject, newFaultSubject, readBth } from '../port/faults/fault-subject.js';
export { type FaultRuleSpec, parseFaultRules } from '../port/faults/grammar.js';
export { HeldBack } from '../port/faults/held-back.js';
