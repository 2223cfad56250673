/** The result of an audit in one sentence, with its reason. */

import type { Tone } from '@rocev2/command/plot';
import type { AuditReport } from './audit.js';
import { ruleOf } from './catalogue.js';
import type { Severity } from './rule.js';

const REASON =
  '{packets} RoCEv2 packets, {connections} connections with both directions. {kept} rules are kept{broken}. ' +
  'The capture does not decide some cases of {open} rules.';

/** In English. `{name}` is replaced by a number. A page in another language has others. */
export const OVERVIEW_TEXTS = {
  nothing: 'The file has no RoCEv2 packet to check',
  'nothing.text': 'Reason: {why}.',
  broken: 'Rules that must be kept are broken: {rules}',
  'broken.text': REASON.replace('{broken}', ', {broken} are broken'),
  advised: 'Recommendations are not followed: {advised}',
  'advised.text': REASON.replace('{broken}', ''),
  kept: 'No rule is broken',
  'kept.text': REASON.replace('{broken}', ''),
} as const;

interface AuditOverview {
  readonly result: 'nothing' | 'broken' | 'advised' | 'kept';
  readonly tone: Tone;
  /** For `{name}` in the texts. */
  readonly numbers: Readonly<Record<string, string>>;
}

/** `why`: why there is no RoCEv2 packet, if so. */
export function overviewOf({ packets, connections, rules }: AuditReport, why?: string): AuditOverview {
  const isBroken = (wanted: Severity) =>
    rules.filter(({ rule, verdict }) => verdict === 'violation' && ruleOf(rule)?.severity === wanted);
  const [broken, advised] = [isBroken('must'), isBroken('should')];
  const listed = (some: typeof rules) => some.map(({ rule }) => rule).join(', ');
  const numbers = {
    packets: String(packets.roce),
    connections: String(connections),
    kept: String(rules.filter(({ verdict }) => verdict === 'pass').length),
    open: String(rules.filter(({ cannotTell }) => cannotTell > 0).length),
    broken: String(broken.length),
    rules: listed(broken),
    advised: listed(advised),
    why: why ?? '',
  };
  if (why !== undefined) return { result: 'nothing', tone: 'fair', numbers };
  if (broken.length > 0) return { result: 'broken', tone: 'bad', numbers };
  return advised.length > 0 ? { result: 'advised', tone: 'fair', numbers } : { result: 'kept', tone: 'good', numbers };
}
