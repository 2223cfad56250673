import type { Ledger } from './ledger.js';
import type { MeasureName, Measures } from './measures.js';

/** Called with each value and choice that an audit records; `flow` is as in a finding. */
export interface RuleListener {
  /** A value of a measure. */
  measured(name: MeasureName, value: number, flow: string): void;
  /** What a peer chose where the rule leaves a choice. */
  chosen(rule: number, choice: string, flow: string): void;
}

export class RuleReporter {
  packet = 0;
  flow = '';
  readonly #ledger: Ledger;
  readonly #measures: Measures;

  readonly #listener: RuleListener | undefined;

  constructor(ledger: Ledger, measures: Measures, listener?: RuleListener) {
    this.#ledger = ledger;
    this.#measures = measures;
    this.#listener = listener;
  }

  pass(rule: number): void {
    this.#ledger.pass(rule);
  }

  violation(rule: number, text: string, ...others: readonly number[]): void {
    this.#ledger.violation({ rule, packets: [...others, this.packet], flow: this.flow, text });
  }

  cannotTell(rule: number, text: string, ...others: readonly number[]): void {
    this.#ledger.cannotTell({ rule, packets: [...others, this.packet], flow: this.flow, text });
  }

  measure(name: MeasureName, value: number): void {
    this.#measures.add(name, value);
    this.#listener?.measured(name, value, this.flow);
  }

  choose(rule: number, choice: string): void {
    if (this.#measures.choose(rule, choice, this.packet)) this.#listener?.chosen(rule, choice, this.flow);
  }
}
