/** The 111 rules of docs/conformance.md. That page is written from here. */

import { ACKNOWLEDGEMENT_RULES, TIMER_RULES } from './catalogue/acknowledgements.js';
import { FORMAT_RULES } from './catalogue/format.js';
import {
  CONGESTION_RULES,
  CONNECTION_RULES,
  DATAGRAM_RULES,
  ROBUSTNESS_RULES,
  SECURITY_RULES,
} from './catalogue/operation.js';
import { ATOMIC_RULES, ERROR_RULES, READ_RULES } from './catalogue/reads.js';
import { REQUEST_RULES } from './catalogue/requests.js';
import type { Rule, RuleSection } from './rule.js';

/** All rules by subject. */
export const RULE_SECTIONS: readonly RuleSection[] = [
  FORMAT_RULES,
  REQUEST_RULES,
  ACKNOWLEDGEMENT_RULES,
  TIMER_RULES,
  READ_RULES,
  ATOMIC_RULES,
  ERROR_RULES,
  CONGESTION_RULES,
  CONNECTION_RULES,
  DATAGRAM_RULES,
  SECURITY_RULES,
  ROBUSTNESS_RULES,
];

/** All rules in the order of their numbers. */
export const RULES: readonly Rule[] = RULE_SECTIONS.flatMap(({ rules }) => rules);

/** The rules that an audit judges. */
export const JUDGED_RULES: readonly Rule[] = RULES.filter(({ audit }) => audit === 'judged');

const BY_ID = new Map(RULES.map((rule) => [rule.id, rule]));

/** The rule with that number; undefined where there is none. */
export function ruleOf(id: number): Rule | undefined {
  return BY_ID.get(id);
}
