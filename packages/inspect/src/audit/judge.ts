/** Verdicts on the packet in hand, for rules that look at one direction of a connection. */

import type { Ledger } from './ledger.js';
import type { MeasureName, Measures } from './measures.js';

/** Is told of what has no verdict while it happens; `flow` is who sends the packet in hand to whom. */
export interface JudgeListener {
  /** A value was measured. */
  measured(name: MeasureName, value: number, flow: string): void;
  /** A peer chose for the first time one way of several. */
  chosen(rule: number, choice: string, flow: string): void;
}

/** Made once an audit; `packet` and `flow` are set for each packet. */
export class Judge {
  /** Number of the packet in hand. */
  packet = 0;
  /** Who sends it to whom. */
  flow = '';
  readonly #ledger: Ledger;
  readonly #measures: Measures;

  readonly #listener: JudgeListener | undefined;

  constructor(ledger: Ledger, measures: Measures, listener?: JudgeListener) {
    this.#ledger = ledger;
    this.#measures = measures;
    this.#listener = listener;
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
    this.#listener?.measured(name, value, this.flow);
  }

  /** The packet in hand shows which way a peer has chosen, where the rule leaves a choice. */
  choose(rule: number, choice: string): void {
    if (this.#measures.choose(rule, choice, this.packet)) this.#listener?.chosen(rule, choice, this.flow);
  }
}
