/** Internals of faults that the packages of this repository use. No part of the public API: it changes without notice. */

export { changeBytes, FAULT_BLEACH, FAULT_CHANGES, FAULT_CORRUPT, FAULT_DELAY, FAULT_DROP, FAULT_DUPLICATE, FAULT_MARK, FAULT_PASS, FAULT_REORDER, FAULT_REWRITE, FAULT_TRIM } from '../port/faults/actions.js';
export { Delayed } from '../port/faults/delayed.js';
export { FaultPlan, type FaultRuleHits, type FaultVerdict } from '../port/faults/fault-plan.js';
export { type FaultSubject, newFaultSubject, readBth } from '../port/faults/fault-subject.js';
export { type FaultRuleSpec, parseFaultRules } from '../port/faults/grammar.js';
export { HeldBack } from '../port/faults/held-back.js';
