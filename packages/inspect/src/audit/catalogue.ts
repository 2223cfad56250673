/** That page is written from here. */

import { ACKNOWLEDGEMENT_RULES, TIMER_RULES } from './catalogue/acknowledgement-rules.js';
import { FORMAT_RULES } from './catalogue/format-rules.js';
import {
  CONGESTION_RULES,
  CONNECTION_RULES,
  DATAGRAM_RULES,
  ROBUSTNESS_RULES,
  SECURITY_RULES,
} from './catalogue/operation.js';
import { ATOMIC_RULES, ERROR_RULES, PLACEMENT_RULES, READ_RULES } from './catalogue/reads.js';
import { REQUEST_RULES } from './catalogue/request-rules.js';
import type { Rule, RuleSection } from './rule.js';

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
  PLACEMENT_RULES,
];

export const RULES: readonly Rule[] = RULE_SECTIONS.flatMap(({ rules }) => rules);

export const JUDGED_RULES: readonly Rule[] = RULES.filter(({ audit }) => audit === 'judged');

const BY_ID = new Map(RULES.map((rule) => [rule.id, rule]));

export function ruleOf(id: number): Rule | undefined {
  return BY_ID.get(id);
}
