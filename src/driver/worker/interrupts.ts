/**
 * One interrupt for all events since the last one: a thread woken for the first of many takes the processor from the
 * thread that produces the others.
 */

import { COUNTER } from '../../memory/ring/counters.js';
import { WORD_INTERRUPTS } from './thread-messages.js';

/** The NIC's side. Its driver delivers after it has processed arrived datagrams, and after each poll. */
export class Interrupts {
  readonly #control: Int32Array;
  readonly #counters: Float64Array;
  #pending = false;

  constructor(control: Int32Array, counters: Float64Array) {
    this.#control = control;
    this.#counters = counters;
  }

  raise(): void {
    this.#pending = true;
  }

  deliver(): void {
    if (!this.#pending) return;
    this.#pending = false;
    this.#counters[COUNTER.interrupts]++;
    Atomics.add(this.#control, WORD_INTERRUPTS, 1);
    Atomics.notify(this.#control, WORD_INTERRUPTS);
  }
}
