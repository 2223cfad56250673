/**
 * Fault rules as a person writes them (see docs/faults.md):
 *
 *     rules     = rule { ";" rule }
 *     rule      = [ ingress ">" egress ":" ] kind "=" value { "," value } [ ":" limit ]
 *     ingress, egress = a port's name, or "*"
 *     limit     = "once" | "x" count          applies at most this often
 *
 *     ip-id-lsb=0xff      drops IPv4 packets whose identification ends in this byte
 *     every=256           drops every 256th packet
 *     random=0.004        drops each packet with this probability
 *     burst=GB,BG[,LOSS]  Gilbert-Elliott: probability good->bad, bad->good, and of loss while bad (default 1)
 *     psn=16, psn=10-20   drops these PSNs
 *     rpsn=16, rpsn=0-20  the same, counted from the first PSN of each connection
 *     psn=16@2, rpsn=5@2  only the second transmission of it
 *     opcode=NAME, =0x11  drops packets of this opcode: ACKNOWLEDGE (any transport), UD_SEND_ONLY (that transport)
 *     corrupt=0.001       flips one bit that the ICRC covers
 *     duplicate=0.001     delivers the packet twice
 *     reorder=0.001[,3]   holds the packet back until this many others have passed
 *
 * Integers are decimal or 0x; probabilities are decimals or fractions (1/256).
 */

import { RoceError } from '../core/errors.js';
import type { RandomSource } from '../core/random.js';
import { OPCODES } from '../packet/opcode.js';
import { PSN_MASK } from '../packet/psn.js';
import { AtRandom, type Condition, EveryNth, GilbertElliott, IpIdLowByte, OpcodeIn, PsnRange } from './conditions.js';
import { NthTransmission, RelativePsnRange } from './psn-conditions.js';

/** Verdict: no rule applies; the packet passes unchanged. */
export const FAULT_PASS = 0;
/** Verdict: the packet is dropped. */
export const FAULT_DROP = 1;
/** Verdict: one bit that the ICRC covers is flipped. */
export const FAULT_CORRUPT = 2;
/** Verdict: the packet is delivered twice in a row. */
export const FAULT_DUPLICATE = 3;
/** Verdict: the packet is held back until others have passed. */
export const FAULT_DELAY = 4;

/** A held-back packet occupies memory until it is let go. */
const REORDER_BEHIND_MAX = 1024;

/** A parsed rule: immutable, without state until a plan starts it. */
export interface FaultRuleSpec {
  /** The rule as the user wrote it. */
  readonly text: string;
  /** `*` matches any port. */
  readonly ingress: string;
  /** `*` matches any port. */
  readonly egress: string;
  /** What happens to a packet to which the rule applies: FAULT_DROP, FAULT_CORRUPT, FAULT_DUPLICATE or FAULT_DELAY. */
  readonly action: number;
  /** For FAULT_DELAY: how many packets overtake. */
  readonly behind: number;
  /** How often the rule may apply; Infinity without a limit. */
  readonly limit: number;
  /** The condition in its initial state. */
  start(random: RandomSource): Condition;
}

type Outcome = Pick<FaultRuleSpec, 'action' | 'behind' | 'start'>;

interface RuleKind {
  readonly form: string;
  /** Undefined when the values make no sense. */
  parse(values: readonly string[]): Outcome | undefined;
}

const KINDS: ReadonlyMap<string, RuleKind> = new Map<string, RuleKind>([
  ['ip-id-lsb', { form: 'ip-id-lsb=0xff', parse: ipIdLowByte }],
  ['every', { form: 'every=256', parse: every }],
  ['random', { form: 'random=0.004', parse: (values) => atRandom(values, FAULT_DROP) }],
  ['burst', { form: 'burst=P_GOOD_BAD,P_BAD_GOOD[,LOSS_BAD]', parse: burst }],
  ['psn', { form: 'psn=16, psn=10-20 or psn=16@2', parse: (values) => psn(values, PsnRange) }],
  ['rpsn', { form: 'rpsn=16, rpsn=0-20 or rpsn=16@2', parse: (values) => psn(values, RelativePsnRange) }],
  ['opcode', { form: 'opcode=ACKNOWLEDGE or opcode=0x11', parse: opcode }],
  ['corrupt', { form: 'corrupt=0.001', parse: (values) => atRandom(values, FAULT_CORRUPT) }],
  ['duplicate', { form: 'duplicate=0.001', parse: (values) => atRandom(values, FAULT_DUPLICATE) }],
  ['reorder', { form: 'reorder=0.001[,BEHIND]', parse: reorder }],
]);

const RULE = /^(?:([^>:=]+)>([^>:=]+):)?([^=:>]+)=([^:]*)(?::([^:]+))?$/;

/** Parses rules joined by `;`. Throws ERR_ROCE_MALFORMED that names the rule. */
export function parseFaultRules(text: string): FaultRuleSpec[] {
  return text.split(';').map((rule) => parseRule(rule.trim()));
}

function parseRule(text: string): FaultRuleSpec {
  const parts = RULE.exec(text);
  if (parts === null) throw ruleError(text, 'is not of the form [FROM>TO:]KIND=VALUE[:once|:xN]');
  const [, ingress = '*', egress = '*', kindName, valueText, limitText] = parts.map((part) => part?.trim());
  const kind = KINDS.get(kindName);
  if (kind === undefined) throw ruleError(text, `has the unknown kind '${kindName}'`);
  const outcome = kind.parse(valueText.split(',').map((value) => value.trim()));
  if (outcome === undefined) throw ruleError(text, `needs the form ${kind.form}, with probabilities in 0..1`);
  const limit = parseLimit(limitText);
  if (limit === undefined) throw ruleError(text, `cannot be limited by '${limitText}': use once or xN`);
  return { text, ingress, egress, limit, ...outcome };
}

function ruleError(text: string, problem: string): RoceError {
  const known = [...KINDS.values()].map(({ form }) => form).join('; ');
  return new RoceError('ERR_ROCE_MALFORMED', `fault rule '${text}' ${problem}`, `known rules: ${known}`);
}

function parseLimit(text: string | undefined): number | undefined {
  if (text === undefined) return Number.POSITIVE_INFINITY;
  if (text === 'once') return 1;
  return text.startsWith('x') ? integer(text.slice(1), 1, Number.MAX_SAFE_INTEGER) : undefined;
}

function integer(text: string | undefined, min: number, max: number): number | undefined {
  if (text === undefined || !/^(\d+|0x[0-9a-f]+)$/i.test(text)) return undefined;
  const value = Number(text);
  return value >= min && value <= max ? value : undefined;
}

function probability(text: string | undefined): number | undefined {
  const parts = /^(\d*\.?\d+(?:e-?\d+)?)(?:\/(\d+))?$/i.exec(text ?? '');
  if (parts === null) return undefined;
  const value = Number(parts[1]) / Number(parts[2] ?? 1);
  return value >= 0 && value <= 1 ? value : undefined;
}

function drops(start: (random: RandomSource) => Condition): Outcome {
  return { action: FAULT_DROP, behind: 0, start };
}

function ipIdLowByte(values: readonly string[]): Outcome | undefined {
  const value = integer(values[0], 0, 0xff);
  return value === undefined || values.length > 1 ? undefined : drops(() => new IpIdLowByte(value));
}

function every(values: readonly string[]): Outcome | undefined {
  const n = integer(values[0], 1, Number.MAX_SAFE_INTEGER);
  return n === undefined || values.length > 1 ? undefined : drops(() => new EveryNth(n));
}

function atRandom(values: readonly string[], action: number): Outcome | undefined {
  const rate = probability(values[0]);
  if (rate === undefined || values.length > 1) return undefined;
  return { action, behind: 0, start: (random) => new AtRandom(rate, random) };
}

function burst(values: readonly string[]): Outcome | undefined {
  const [goodToBad, badToGood, lossInBad] = [values[0], values[1], values[2] ?? '1'].map(probability);
  if (goodToBad === undefined || badToGood === undefined || lossInBad === undefined || values.length > 3)
    return undefined;
  return drops((random) => new GilbertElliott(goodToBad, badToGood, lossInBad, random));
}

/** `16`, `10-20`, each with `@n` for the n-th transmission. */
function psn(values: readonly string[], Range: new (first: number, last: number) => Condition): Outcome | undefined {
  const [range, nth, ...rest] = values[0].split('@');
  const ends = range.split('-');
  const first = integer(ends[0], 0, PSN_MASK);
  const last = integer(ends[1] ?? ends[0], 0, PSN_MASK);
  const n = nth === undefined ? 0 : integer(nth, 1, Number.MAX_SAFE_INTEGER);
  if (first === undefined || last === undefined || n === undefined) return undefined;
  if (ends.length > 2 || values.length > 1 || rest.length > 0) return undefined;
  return drops(() => (n === 0 ? new Range(first, last) : new NthTransmission(new Range(first, last), n)));
}

function opcode(values: readonly string[]): Outcome | undefined {
  const number = integer(values[0], 0, 0xff);
  const opcodes = number === undefined ? opcodesNamed(values[0]) : new Set([number]);
  return opcodes.size === 0 || values.length > 1 ? undefined : drops(() => new OpcodeIn(opcodes));
}

function opcodesNamed(text: string): Set<number> {
  const name = text.toUpperCase().replaceAll(' ', '_');
  const opcodes = new Set<number>();
  for (const entry of OPCODES) {
    if (entry !== undefined && (entry.name === name || `${entry.transport}_${entry.name}` === name)) {
      opcodes.add(entry.opcode);
    }
  }
  return opcodes;
}

function reorder(values: readonly string[]): Outcome | undefined {
  const outcome = atRandom(values.slice(0, 1), FAULT_DELAY);
  const behind = integer(values[1] ?? '3', 1, REORDER_BEHIND_MAX);
  return outcome === undefined || behind === undefined || values.length > 2 ? undefined : { ...outcome, behind };
}
