/** Verdicts on the packet in hand, for rules that look at one direction of a connection. */

import type { Ledger } from './ledger.js';

/** Made once an audit; `packet` and `flow` are set for each packet. */
export class Judge {
  /** Number of the packet in hand. */
  packet = 0;
  /** Who sends it to whom. */
  flow = '';
  readonly #ledger: Ledger;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
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
}
