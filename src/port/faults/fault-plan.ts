/**
 * A list of fault rules in action. Rules are tested in order, and the first that applies decides; the rules after it do not see the
 * packet. The same seed, the same packets and the same times give the same verdicts.
 */

import { RoceError } from '../../core/errors.js';
import { type RandomSource, randomInt, randomUnit, type SeededRandom } from '../../core/random.js';
import { FAULT_CORRUPT, FAULT_DELAY, FAULT_PASS, FAULT_TRIM } from './actions.js';
import type { Condition } from './conditions.js';
import type { FaultSubject } from './fault-subject.js';
import { type FaultRuleSpec, parseFaultRules } from './grammar.js';
import { type FieldChange, hasField } from './rewrite.js';

/** What to do with a packet. One record per plan, overwritten by every decision. */
export interface FaultVerdict {
  /** FAULT_ bits; FAULT_PASS: nothing. */
  bits: number;
  /** For FAULT_CORRUPT: the bit to flip, counted from the first bit of the BTH. */
  bit: number;
  /** For FAULT_REORDER: how many packets of the same direction overtake this one. */
  behind: number;
  /** For FAULT_DELAY: how long the packet is held back. */
  delayNs: number;
  /** For FAULT_TRIM: bytes that are left, from the BTH on. */
  trimBytes: number;
  /** For FAULT_REWRITE. @internal */
  changes: readonly FieldChange[];
  /** The text of the rule that struck; empty when none did. */
  rule: string;
}

/** The ICRC does not cover BTH byte 4, so that flipping a bit there would be no fault. */
const UNCOVERED_BYTE = 4;

class FaultRule {
  readonly spec: FaultRuleSpec;
  /** How often the rule has applied. */
  hits = 0;
  readonly #condition: Condition;
  readonly #jitter: RandomSource;
  /** When what the rule has let go at its rate has left. */
  #freeNs = 0;

  constructor(spec: FaultRuleSpec, random: RandomSource, jitter: RandomSource) {
    this.spec = spec;
    this.#condition = spec.start(random);
    this.#jitter = jitter;
  }

  strikes(subject: FaultSubject): boolean {
    const { ingress, egress, limit, actions } = this.spec;
    if (ingress !== '*' && ingress !== subject.ingress) return false;
    if (egress !== '*' && egress !== subject.egress) return false;
    if (this.hits >= limit) return false;
    for (const { field } of actions.changes) if (!hasField(subject.opcode, field)) return false;
    if (!this.#condition.matches(subject)) return false;
    this.hits++;
    return true;
  }

  /** How long a packet that arrives now is held back. */
  delayNs(bytes: number, nowNs: number): number {
    const { delayNs, jitterNs, rateBps } = this.spec.actions;
    this.#freeNs = Math.max(this.#freeNs, nowNs) + (bytes * 8e9) / rateBps;
    const jitter = jitterNs === 0 ? 0 : (2 * randomUnit(this.#jitter) - 1) * jitterNs;
    return this.#freeNs - nowNs + delayNs + jitter;
  }
}

/** How often one rule has applied. */
export interface FaultRuleHits {
  /** Its text. */
  readonly rule: string;
  /** Packets that it struck. */
  readonly hits: number;
}

/** Rules with their state: counters and random streams. */
export class FaultPlan {
  readonly #random: SeededRandom;
  readonly #bits: RandomSource;
  #rules: FaultRule[] = [];
  readonly #verdict: FaultVerdict = {
    bits: FAULT_PASS,
    bit: 0,
    behind: 0,
    delayNs: 0,
    trimBytes: 0,
    changes: [],
    rule: '',
  };

  /** @internal */
  constructor(specs: readonly FaultRuleSpec[], random: SeededRandom) {
    this.#random = random;
    this.#bits = random.stream('fault bits');
    this.replaceRules(specs);
  }

  /**
   * From the command-line form. Throws ERR_ROCE_MALFORMED that names the rule. `places`: what directions may name; a rule with another name would
   * never strike. Default: anything.
   */
  static parse(text: string, random: SeededRandom, places?: readonly string[]): FaultPlan {
    const specs = parseFaultRules(text);
    if (places !== undefined) for (const spec of specs) checkDirection(spec, places);
    return new FaultPlan(specs, random);
  }

  /** Replaces the rules from the next packet on; their counters start at 0. @internal */
  replaceRules(specs: readonly FaultRuleSpec[]): void {
    this.#rules = [];
    for (const spec of specs) {
      // Named by its text, so that another rule in the list does not change this one's numbers.
      const name = `${spec.text} #${this.#rules.filter((rule) => rule.spec.text === spec.text).length}`;
      const jitter = this.#random.stream(`fault jitter ${name}`);
      this.#rules.push(new FaultRule(spec, this.#random.stream(`fault ${name}`), jitter));
    }
  }

  /** The text of every rule, with how often it has applied. */
  get hits(): readonly FaultRuleHits[] {
    return this.#rules.map(({ spec, hits }) => ({ rule: spec.text, hits }));
  }

  /** Judges one packet. The verdict is valid until the next call. `nowNs` matters to rules with a rate alone. */
  decide(subject: FaultSubject, nowNs: number): FaultVerdict {
    const verdict = this.#verdict;
    verdict.bits = FAULT_PASS;
    verdict.rule = '';
    for (const rule of this.#rules) {
      if (!rule.strikes(subject)) continue;
      const { text, actions } = rule.spec;
      const { bits } = actions;
      verdict.bits = bits;
      verdict.behind = actions.behind;
      verdict.trimBytes = actions.trimBytes;
      verdict.changes = actions.changes;
      verdict.rule = text;
      const bytes = (bits & FAULT_TRIM) !== 0 ? Math.min(subject.bytes, actions.trimBytes) : subject.bytes;
      if ((bits & FAULT_CORRUPT) !== 0) verdict.bit = this.#coveredBit(bytes);
      if ((bits & FAULT_DELAY) !== 0) verdict.delayNs = rule.delayNs(bytes, nowNs);
      break;
    }
    return verdict;
  }

  #coveredBit(bytes: number): number {
    const bit = randomInt(this.#bits, 0, 8 * (bytes - 1) - 1);
    return bit < 8 * UNCOVERED_BYTE ? bit : bit + 8;
  }
}

function checkDirection({ text, ingress, egress }: FaultRuleSpec, places: readonly string[]): void {
  const stranger = [ingress, egress].find((name) => name !== '*' && !places.includes(name));
  if (stranger === undefined) return;
  throw new RoceError(
    'ERR_ROCE_MALFORMED',
    `fault rule '${text}' would never strike: there is no '${stranger}'`,
    `a direction is FROM>TO, of ${places.join(', ')} and *`,
  );
}
