/**
 * The grammar of fault rules (see docs/faults.md):
 *
 *     rules     = rule { ";" rule }
 *     rule      = [ ingress ">" egress ":" ] condition { "," action } [ ":" limit ]
 *     condition = name "=" value { "," value }
 *     action    = name [ "=" value { "," value } ]      without one: drop
 *     ingress, egress = a port's name, or "*"
 *     limit     = "once" | "x" count          applies at most this often
 *
 * Text between two commas begins an action if it has the name of one; else it is a value of the previous part. No value
 * has the name of an action. `corrupt=P`, `duplicate=P` and `reorder=P[,N]` are short for `random=P` with that action.
 */

import { RoceError } from '../../core/errors.js';
import { ACTION_FORMS, type FaultActionSpec, isAction, parseActions } from './action-grammar.js';
import { FAULT_ACTIONS } from './actions.js';
import { CONDITION_FORMS, type ConditionStart, conditionForm, parseCondition } from './condition-grammar.js';
import { integer } from './numbers.js';

export interface FaultRuleSpec {
  readonly text: string;
  readonly ingress: string;
  readonly egress: string;
  readonly actions: readonly FaultActionSpec[];
  /** How often the rule may apply; Infinity without a limit. */
  readonly limit: number;
  readonly start: ConditionStart;
}

/** Conditions that are also names of actions: at random, with this probability. */
const AT_RANDOM: ReadonlyMap<string, string> = new Map(
  FAULT_ACTIONS.flatMap(({ name, randomForm }) => (randomForm === undefined ? [] : [[name, randomForm]])),
);

const RULE = /^(?:([^>:=]+)>([^>:=]+):)?([^=:>]+)=([^:]*)(?::([^:]+))?$/;

export function parseFaultRules(text: string): FaultRuleSpec[] {
  return text.split(';').map((rule) => parseRule(rule.trim()));
}

function parseRule(text: string): FaultRuleSpec {
  const parts = RULE.exec(text);
  if (parts === null) throw ruleError(text, 'is not of the form [FROM>TO:]CONDITION=VALUE[,ACTION...][:once|:xN]');
  const [, ingress = '*', egress = '*', name, valueText, limitText] = parts.map((part) => part?.trim());
  const form = conditionForm(name) ?? AT_RANDOM.get(name);
  if (form === undefined) throw ruleError(text, `has the unknown kind '${name}'`);
  const [first, ...rest] = valueText.split(',').map((value) => value.trim());
  const firstAction = rest.findIndex(isAction);
  const values = [first, ...(firstAction < 0 ? rest : rest.slice(0, firstAction))];
  const actionParts = firstAction < 0 ? [] : rest.slice(firstAction);
  const start = AT_RANDOM.has(name) ? parseCondition('random', values.slice(0, 1)) : parseCondition(name, values);
  if (start === undefined) throw ruleError(text, `needs the form ${form}, with probabilities in 0..1`);
  const limit = parseLimit(limitText);
  if (limit === undefined) throw ruleError(text, `cannot be limited by '${limitText}': use once or xN`);
  const ownAction = AT_RANDOM.has(name) ? [actionOfCondition(name, values)] : [];
  try {
    return { text, ingress, egress, limit, start, actions: parseActions([...ownAction, ...actionParts]) };
  } catch (error) {
    const isOwn = ownAction.length > 0 && actionParts.length === 0;
    throw ruleError(text, isOwn ? `needs the form ${form}` : (error as Error).message);
  }
}

/** `reorder=0.1,7` acts as `reorder=7`. */
function actionOfCondition(name: string, [, ...values]: readonly string[]): string {
  return values.length === 0 ? name : `${name}=${values.join(',')}`;
}

function ruleError(text: string, problem: string): RoceError {
  const conditions = [...CONDITION_FORMS, ...AT_RANDOM.values()].join('; ');
  const hint = `known rules: ${conditions}; with actions: ${ACTION_FORMS}`;
  return new RoceError('ERR_ROCE_MALFORMED', `fault rule '${text}' ${problem}`, hint);
}

function parseLimit(text: string | undefined): number | undefined {
  if (text === undefined) return Number.POSITIVE_INFINITY;
  if (text === 'once') return 1;
  return text.startsWith('x') ? integer(text.slice(1), 1, Number.MAX_SAFE_INTEGER) : undefined;
}
