/** Conditions of fault rules as a person writes them: `every=256`, `psn=10-20@2`. */

import type { RandomSource } from '../../core/random.js';
import { OPCODES } from '../../packet/opcode.js';
import { PSN_MASK } from '../../packet/psn.js';
import { AtRandom, type Condition, EveryNth, GilbertElliott, IpIdLowByte, OpcodeIn, PsnRange } from './conditions.js';
import { integer, probability } from './numbers.js';
import { NthTransmission, RelativePsnRange } from './psn-conditions.js';

export type ConditionStart = (random: RandomSource) => Condition;

interface ConditionKind {
  readonly form: string;
  parse(values: readonly string[]): ConditionStart | undefined;
}

const CONDITIONS: ReadonlyMap<string, ConditionKind> = new Map<string, ConditionKind>([
  ['ip-id-lsb', { form: 'ip-id-lsb=0xff', parse: ipIdLowByte }],
  ['every', { form: 'every=256', parse: every }],
  ['random', { form: 'random=0.004', parse: atRandom }],
  ['burst', { form: 'burst=P_GOOD_BAD,P_BAD_GOOD[,LOSS_BAD]', parse: burst }],
  ['psn', { form: 'psn=16, psn=10-20 or psn=16@2', parse: (values) => psn(values, PsnRange) }],
  ['rpsn', { form: 'rpsn=16, rpsn=0-20 or rpsn=16@2', parse: (values) => psn(values, RelativePsnRange) }],
  ['opcode', { form: 'opcode=ACKNOWLEDGE or opcode=0x11', parse: opcode }],
]);

export const CONDITION_FORMS: readonly string[] = Array.from(CONDITIONS.values(), ({ form }) => form);

export function conditionForm(name: string): string | undefined {
  return CONDITIONS.get(name)?.form;
}

export function parseCondition(name: string, values: readonly string[]): ConditionStart | undefined {
  return CONDITIONS.get(name)?.parse(values);
}

function ipIdLowByte(values: readonly string[]): ConditionStart | undefined {
  const value = integer(values[0], 0, 0xff);
  return value === undefined || values.length > 1 ? undefined : () => new IpIdLowByte(value);
}

function every(values: readonly string[]): ConditionStart | undefined {
  const n = integer(values[0], 1, Number.MAX_SAFE_INTEGER);
  return n === undefined || values.length > 1 ? undefined : () => new EveryNth(n);
}

function atRandom(values: readonly string[]): ConditionStart | undefined {
  const rate = probability(values[0]);
  return rate === undefined || values.length > 1 ? undefined : (random) => new AtRandom(rate, random);
}

function burst(values: readonly string[]): ConditionStart | undefined {
  const [goodToBad, badToGood, lossInBad] = [values[0], values[1], values[2] ?? '1'].map(probability);
  if (goodToBad === undefined || badToGood === undefined || lossInBad === undefined || values.length > 3)
    return undefined;
  return (random) => new GilbertElliott(goodToBad, badToGood, lossInBad, random);
}

function psn(
  values: readonly string[],
  Range: new (first: number, last: number) => Condition,
): ConditionStart | undefined {
  const [range, nth, ...rest] = values[0].split('@');
  const ends = range.split('-');
  const first = integer(ends[0], 0, PSN_MASK);
  const last = integer(ends[1] ?? ends[0], 0, PSN_MASK);
  const n = nth === undefined ? 0 : integer(nth, 1, Number.MAX_SAFE_INTEGER);
  if (first === undefined || last === undefined || n === undefined) return undefined;
  if (ends.length > 2 || values.length > 1 || rest.length > 0) return undefined;
  return () => (n === 0 ? new Range(first, last) : new NthTransmission(new Range(first, last), n));
}

function opcode(values: readonly string[]): ConditionStart | undefined {
  const number = integer(values[0], 0, 0xff);
  const opcodes = number === undefined ? opcodesNamed(values[0]) : new Set([number]);
  return opcodes.size === 0 || values.length > 1 ? undefined : () => new OpcodeIn(opcodes);
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
