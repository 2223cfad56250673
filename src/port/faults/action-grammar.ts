/** Actions of fault rules as a person writes them: `corrupt`, `delay=1ms,10us`. */

import { RoceError } from '../../core/errors.js';
import { drop } from './actions/drop.js';
import { FAULT_ACTIONS, type FaultAction } from './actions.js';
import type { FaultEffectStart } from './fault-action.js';

/** An action of a rule. */
export interface FaultActionSpec {
  readonly action: FaultAction;
  readonly start: FaultEffectStart;
}

const ACTIONS: ReadonlyMap<string, FaultAction> = new Map(FAULT_ACTIONS.map((action) => [action.name, action]));

export const ACTION_FORMS: string = FAULT_ACTIONS.map(({ form }) => form).join('; ');

export function isAction(part: string): boolean {
  return ACTIONS.has(part.split('=', 1)[0].trim());
}

/**
 * Parses the parts of a rule after its condition, `delay=1ms`, `10us` ...; without any, the rule drops. The actions
 * come in the order in which they apply. Throws an Error whose message describes the mistake.
 */
export function parseActions(parts: readonly string[]): readonly FaultActionSpec[] {
  if (parts.length === 0) return parseActions([drop.name]);
  let specs: FaultActionSpec[] = [];
  for (let next = 0; next < parts.length; ) {
    const [name, ...first] = parts[next++].split('=').map((text) => text.trim());
    const action = ACTIONS.get(name);
    if (action === undefined) throw new Error(`has the unknown action '${name}'`);
    const values = [...first];
    while (next < parts.length && !isAction(parts[next])) values.push(parts[next++].trim());
    const start = first.length > 1 ? undefined : parseValues(action, values);
    if (start === undefined) throw new Error(`needs the form ${action.form}`);
    if (action.repeats !== true) specs = specs.filter((spec) => spec.action !== action);
    specs.push({ action, start });
  }
  checkCombination(specs.map(({ action }) => action));
  return FAULT_ACTIONS.flatMap((action) => specs.filter((spec) => spec.action === action));
}

/** For an invalid time or rate the message is that of its parser. */
function parseValues(action: FaultAction, values: readonly string[]): FaultEffectStart | undefined {
  try {
    return action.parse(values);
  } catch (error) {
    if (error instanceof RoceError) throw new Error(`needs the form ${action.form}: ${error.message}`);
    throw error;
  }
}

function checkCombination(actions: readonly FaultAction[]): void {
  for (const action of actions) {
    const problem = action.conflict?.(actions.filter((other) => other !== action).map(({ name }) => name));
    if (problem !== undefined) throw new Error(problem);
  }
}
