/**
 * Rules are tested in order, and the first that applies decides; the rules after it do not see the packet. The same
 * seed, the same packets and the same times give the same verdicts.
 */

import { checkKind, checkText, ifGiven } from '../../core/arguments.js';
import { RoceError } from '../../core/errors.js';
import type { RandomSource, SeededRandom } from '../../core/random.js';
import type { RunningAction } from './actions.js';
import type { Condition } from './conditions.js';
import type { FaultFate } from './fault-action.js';
import type { FaultSubject } from './fault-subject.js';
import { type FaultRuleSpec, parseFaultRules } from './grammar.js';

/** What to do with a packet. One record per plan, overwritten by every decision. */
export interface FaultVerdict extends FaultFate {
  /** The text of the rule that matched. */
  rule: string;
  /** Its actions, in the order in which they apply. */
  actions: readonly RunningAction[];
}

class FaultRule {
  readonly spec: FaultRuleSpec;
  readonly actions: readonly RunningAction[];
  hits = 0;
  readonly #condition: Condition;

  constructor(spec: FaultRuleSpec, condition: RandomSource, actions: { plan: RandomSource; rule: RandomSource }) {
    this.spec = spec;
    this.actions = spec.actions.map(({ action, start }) => ({ action, effect: start(actions) }));
    this.#condition = spec.start(condition);
  }

  matches(subject: FaultSubject): boolean {
    const { ingress, egress, limit } = this.spec;
    if (ingress !== '*' && ingress !== subject.ingress) return false;
    if (egress !== '*' && egress !== subject.egress) return false;
    if (this.hits >= limit) return false;
    for (const { effect } of this.actions) if (effect.appliesTo?.(subject) === false) return false;
    if (!this.#condition.matches(subject)) return false;
    this.hits++;
    return true;
  }
}

/** How often one rule has applied. */
export interface FaultRuleHits {
  /** Its text. */
  readonly rule: string;
  /** Packets that it matched. */
  readonly hits: number;
}

/** Rules with their state: counters and random streams. */
export class FaultPlan {
  readonly #random: SeededRandom;
  readonly #bits: RandomSource;
  #rules: FaultRule[] = [];
  readonly #verdict: FaultVerdict = {
    rule: '',
    actions: [],
    drops: false,
    duplicates: false,
    behind: 0,
    delayNs: -1,
    bytes: 0,
  };

  /** @internal */
  constructor(specs: readonly FaultRuleSpec[], random: SeededRandom) {
    this.#random = random;
    this.#bits = random.stream('fault bits');
    this.replaceRules(specs);
  }

  /**
   * From the command-line form. Throws ERR_ROCE_MALFORMED that names the rule. `places`: what directions may name; a
   * rule with another name would never match. Default: anything.
   */
  static parse(text: string, random: SeededRandom, ports?: readonly string[]): FaultPlan {
    checkText('the fault rules', text);
    checkKind('random', random, typeof random?.stream === 'function', 'a SeededRandom');
    ifGiven(ports, () => checkKind('ports', ports, Array.isArray(ports), 'a list of names'));
    const specs = parseFaultRules(text);
    if (ports !== undefined) for (const spec of specs) checkDirection(spec, ports);
    return new FaultPlan(specs, random);
  }

  /** Replaces the rules from the next packet on; their counters start at 0. @internal */
  replaceRules(specs: readonly FaultRuleSpec[]): void {
    this.#rules = [];
    for (const spec of specs) {
      // Named by its text, so that other rules in the list do not change its numbers.
      const name = `${spec.text} #${this.#rules.filter((rule) => rule.spec.text === spec.text).length}`;
      const condition = this.#random.stream(`fault ${name}`);
      const actions = { plan: this.#bits, rule: this.#random.stream(`fault jitter ${name}`) };
      this.#rules.push(new FaultRule(spec, condition, actions));
    }
  }

  /** The text of every rule, with how often it has applied. */
  get hits(): readonly FaultRuleHits[] {
    return this.#rules.map(({ spec, hits }) => ({ rule: spec.text, hits }));
  }

  /**
   * Decides on one packet; undefined: no rule matches. The verdict is valid until the next call. `nowNs` matters to
   * rules with a rate alone.
   */
  decide(subject: FaultSubject, nowNs: number): FaultVerdict | undefined {
    for (const rule of this.#rules) {
      if (!rule.matches(subject)) continue;
      const verdict = this.#verdict;
      verdict.rule = rule.spec.text;
      verdict.actions = rule.actions;
      verdict.drops = false;
      verdict.duplicates = false;
      verdict.behind = 0;
      verdict.delayNs = -1;
      verdict.bytes = subject.bytes;
      for (const { effect } of rule.actions) effect.decide?.(verdict, nowNs);
      return verdict;
    }
    return undefined;
  }
}

function checkDirection({ text, ingress, egress }: FaultRuleSpec, ports: readonly string[]): void {
  const unknown = [ingress, egress].find((name) => name !== '*' && !ports.includes(name));
  if (unknown === undefined) return;
  throw new RoceError(
    'ERR_ROCE_MALFORMED',
    `fault rule '${text}' would never match: there is no '${unknown}'`,
    `a direction is FROM>TO, of ${ports.join(', ')} and *`,
  );
}
