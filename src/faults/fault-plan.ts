/**
 * A list of fault rules in action. Rules are tested in order, and the first that applies decides; the rules after it do not see the
 * packet. The same seed and the same packets give the same verdicts.
 */

import { type RandomSource, randomInt, type SeededRandom } from '../core/random.js';
import type { Condition } from './conditions.js';
import type { FaultSubject } from './fault-subject.js';
import { FAULT_CORRUPT, FAULT_PASS, type FaultRuleSpec, parseFaultRules } from './grammar.js';

/** What to do with a packet. One record per plan, overwritten by every decision. */
export interface FaultVerdict {
  /** FAULT_PASS, FAULT_DROP, FAULT_CORRUPT, FAULT_DUPLICATE or FAULT_DELAY. */
  action: number;
  /** For FAULT_CORRUPT: the bit to flip, counted from the first bit of the BTH. */
  bit: number;
  /** For FAULT_DELAY: how many packets of the same direction overtake this one. */
  behind: number;
}

/** The ICRC does not cover BTH byte 4, so that flipping a bit there would be no fault. */
const UNCOVERED_BYTE = 4;

class FaultRule {
  readonly spec: FaultRuleSpec;
  /** How often the rule has applied. */
  hits = 0;
  readonly #condition: Condition;

  constructor(spec: FaultRuleSpec, random: RandomSource) {
    this.spec = spec;
    this.#condition = spec.start(random);
  }

  strikes(subject: FaultSubject): boolean {
    const { ingress, egress, limit } = this.spec;
    if (ingress !== '*' && ingress !== subject.ingress) return false;
    if (egress !== '*' && egress !== subject.egress) return false;
    if (this.hits >= limit || !this.#condition.matches(subject)) return false;
    this.hits++;
    return true;
  }
}

/** Rules with their state: counters and random streams. */
export class FaultPlan {
  readonly #random: SeededRandom;
  readonly #bits: RandomSource;
  #rules: FaultRule[] = [];
  readonly #verdict: FaultVerdict = { action: FAULT_PASS, bit: 0, behind: 0 };

  constructor(specs: readonly FaultRuleSpec[], random: SeededRandom) {
    this.#random = random;
    this.#bits = random.stream('fault bits');
    this.replaceRules(specs);
  }

  /** From the command-line form. Throws ERR_ROCE_MALFORMED that names the rule. */
  static parse(text: string, random: SeededRandom): FaultPlan {
    return new FaultPlan(parseFaultRules(text), random);
  }

  /** Replaces the rules from the next packet on; their counters start at 0. */
  replaceRules(specs: readonly FaultRuleSpec[]): void {
    this.#rules = [];
    for (const spec of specs) {
      // Named by its text, so that another rule in the list does not change this one's numbers.
      const twins = this.#rules.filter((rule) => rule.spec.text === spec.text).length;
      this.#rules.push(new FaultRule(spec, this.#random.stream(`fault ${spec.text} #${twins}`)));
    }
  }

  /** The text of every rule, with how often it has applied. */
  get hits(): ReadonlyArray<{ readonly rule: string; readonly hits: number }> {
    return this.#rules.map(({ spec, hits }) => ({ rule: spec.text, hits }));
  }

  /** Judges one packet. The verdict is valid until the next call. */
  decide(subject: FaultSubject): FaultVerdict {
    const verdict = this.#verdict;
    verdict.action = FAULT_PASS;
    for (const rule of this.#rules) {
      if (!rule.strikes(subject)) continue;
      verdict.action = rule.spec.action;
      verdict.behind = rule.spec.behind;
      if (verdict.action === FAULT_CORRUPT) verdict.bit = this.#coveredBit(subject.bytes);
      break;
    }
    return verdict;
  }

  #coveredBit(bytes: number): number {
    const bit = randomInt(this.#bits, 0, 8 * (bytes - 1) - 1);
    return bit < 8 * UNCOVERED_BYTE ? bit : bit + 8;
  }
}

/** Flips the verdict's bit of the packet whose BTH is at `offset`; doing it again restores the packet. */
export function flipBit(bytes: Uint8Array, offset: number, bit: number): void {
  bytes[offset + (bit >> 3)] ^= 0x80 >> (bit & 7);
}
