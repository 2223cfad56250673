/**
 * Findings are bounded per rule, counts are not, so that a long capture with one fault in every packet costs no memory.
 */

import { RULES } from './catalogue.js';
import type { Rule } from './rule.js';

/** Verdict on a rule after an audit. */
export type Verdict = 'pass' | 'violation' | 'cannot tell' | 'not seen';

/** A violation of a rule, or a case that cannot be decided. */
export interface Finding {
  /** Number of the rule. */
  readonly rule: number;
  /** `cannot tell`: the capture has a hole, or a cause that it does not show is as likely. */
  readonly verdict: 'violation' | 'cannot tell';
  /** Numbers of the packets in the file, from 1, in the order that the sentence names them. */
  readonly packets: readonly number[];
  /** `10.0.0.1 -> 10.0.0.2 QP 0x000011`: the direction, and the receiving queue pair. */
  readonly flow: string;
  /** The observed and the expected behaviour, as a sentence. */
  readonly text: string;
}

/** The result for one rule. */
export interface RuleResult {
  /** Number of the rule. */
  readonly rule: number;
  /** `violation` if there is at least one; else `pass` if there was at least one case. */
  readonly verdict: Verdict;
  /** How often the rule was followed. */
  readonly passed: number;
  /** How often it was broken. */
  readonly violations: number;
  /** How often the capture does not decide it. */
  readonly cannotTell: number;
}

const FINDINGS_MAX = 100;

export class Ledger {
  readonly #judged: ReadonlySet<number>;
  readonly #passed: number[] = RULES.map(() => 0);
  readonly #violations: number[] = RULES.map(() => 0);
  readonly #cannotTell: number[] = RULES.map(() => 0);
  readonly #findings: Finding[] = [];

  constructor(judged: ReadonlySet<number>) {
    this.#judged = judged;
  }

  pass(rule: number): void {
    this.#passed[rule - 1]++;
  }

  violation(finding: Omit<Finding, 'verdict'>): void {
    const count = ++this.#violations[finding.rule - 1];
    this.#keep({ verdict: 'violation', ...finding }, count);
  }

  cannotTell(finding: Omit<Finding, 'verdict'>): void {
    const count = ++this.#cannotTell[finding.rule - 1];
    this.#keep({ verdict: 'cannot tell', ...finding }, count);
  }

  get findings(): readonly Finding[] {
    return this.#findings;
  }

  results(rules: readonly Rule[]): RuleResult[] {
    return rules
      .filter(({ id }) => this.#judged.has(id))
      .map(({ id }) => {
        const passed = this.#passed[id - 1];
        const violations = this.#violations[id - 1];
        const cannotTell = this.#cannotTell[id - 1];
        return { rule: id, verdict: verdictOf(passed, violations, cannotTell), passed, violations, cannotTell };
      });
  }

  #keep(finding: Finding, count: number): void {
    if (count <= FINDINGS_MAX && this.#judged.has(finding.rule)) this.#findings.push(finding);
  }
}

function verdictOf(passed: number, violations: number, cannotTell: number): Verdict {
  if (violations > 0) return 'violation';
  if (passed > 0) return 'pass';
  return cannotTell > 0 ? 'cannot tell' : 'not seen';
}
