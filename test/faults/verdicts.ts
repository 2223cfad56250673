import type { FaultVerdict } from '../../src/port/faults/fault-plan.js';

/** Names of the actions of a verdict, in the order in which they apply; '' when no rule matched. */
export function actionsOf(verdict: FaultVerdict | undefined): string {
  return verdict?.actions.map(({ action }) => action.name).join(' ') ?? '';
}
