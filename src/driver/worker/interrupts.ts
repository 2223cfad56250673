/**
 * Interrupts from a NIC in a thread of its own to the thread of the application: one for all events since the last one. A thread that is woken for the
 * first of many events takes the processor away from the thread that produces the others.
 */

import { COUNTER } from '../../memory/ring/counters.js';
import { WORD_INTERRUPTS } from './protocol.js';

/** The NIC's side. Its driver delivers after it has processed what arrived, and again after each poll. */
export class Interrupts {
  readonly #control: Int32Array;
  readonly #counters: Float64Array;
  #pending = false;

  /** `control`: the words shared with the application. `counters`: where it counts, by {@link COUNTER}. */
  constructor(control: Int32Array, counters: Float64Array) {
    this.#control = control;
    this.#counters = counters;
  }

  /** Marks that the event ring has new events. */
  raise(): void {
    this.#pending = true;
  }

  /** Wakes the application if an interrupt is pending. */
  deliver(): void {
    if (!this.#pending) return;
    this.#pending = false;
    this.#counters[COUNTER.interrupts]++;
    Atomics.add(this.#control, WORD_INTERRUPTS, 1);
    Atomics.notify(this.#control, WORD_INTERRUPTS);
  }
}
