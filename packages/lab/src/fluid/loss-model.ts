import { drop, parseFaultRules } from 'rocev2/internal/faults';
import type { OptionalLossModel } from './recovery-efficiency.js';

/** The losses of packets that enter at port `sender`; undefined for rules that are not one of the closed forms. */
export function lossModelOf(lossRule: string | undefined, sender = 'a'): OptionalLossModel | undefined {
  if (lossRule === undefined) return { kind: 'none' };
  const rules = parseFaultRules(lossRule);
  const [{ text, ingress, limit, actions }] = rules;
  if (rules.length !== 1 || actions[0].action !== drop) return undefined;
  if (limit !== Number.POSITIVE_INFINITY || (ingress !== '*' && ingress !== sender)) return undefined;
  const [kind, value] = text.slice(text.indexOf('>') < 0 ? 0 : text.indexOf(':') + 1).split(/[=,]/);
  if (kind === 'ip-id-lsb') return { kind: 'regular', period: 256 };
  // Without a direction, the rule also counts the acknowledgements.
  if (kind === 'every' && ingress === sender) return { kind: 'regular', period: Number(value) };
  if (kind === 'random') return { kind: 'random', probability: probabilityOf(value) };
  return undefined;
}

function probabilityOf(text: string): number {
  const [numerator, denominator = '1'] = text.split('/');
  return Number(numerator) / Number(denominator);
}
