/** Verdicts on the packet in hand, for rules that look at one direction of a connection. */

import type { Ledger } from './ledger.js';
import type { MeasureName, Measures } from './measures.js';

/** Made once an audit; `packet` and `flow` are set for each packet. */
export class Judge {
  /** Number of the packet in hand. */
  packet = 0;
  /** Who sends it to whom. */
  flow = '';
  readonly #ledger: Ledger;
  readonly #measures: Measures;

  constructor(ledger: Ledger, measures: Measures) {
    this.#ledger = ledger;
    this.#measures = measures;
  }

  /** The rule was kept. */
  pass(rule: number): void {
    this.#ledger.pass(rule);
  }

  /** The rule was broken by the packet in hand; `others` are the numbers of packets that show it, too. */
  violation(rule: number, text: string, ...others: readonly number[]): void {
    this.#ledger.violation({ rule, packets: [...others, this.packet], flow: this.flow, text });
  }

  /** The capture does not tell. */
  cannotTell(rule: number, text: string, ...others: readonly number[]): void {
    this.#ledger.cannotTell({ rule, packets: [...others, this.packet], flow: this.flow, text });
  }

  /** Something was measured, without a verdict. */
  measure(name: MeasureName, value: number): void {
    this.#measures.add(name, value);
  }

  /** The packet in hand shows which way a peer has chosen, where the rule leaves a choice. */
  choose(rule: number, choice: string): void {
    this.#measures.choose(rule, choice, this.packet);
  }
}
