/**
 * Interrupts of a NIC in a thread of its own, as the application's thread waits for them: one for all events since the last. A thread that is
 * woken for the first of many takes the processor away from the one that makes the others.
 */

import { COUNTER } from '../../ring/counters.js';
import { WORD_INTERRUPTS } from './protocol.js';

/** The NIC's end. Its driver delivers when what arrived has been processed, and again after each turn: never later than that. */
export class Interrupts {
  readonly #control: Int32Array;
  readonly #counters: Float64Array;
  #pending = false;

  /** `control`: the words shared with the application. `counters`: where it counts, by {@link COUNTER}. */
  constructor(control: Int32Array, counters: Float64Array) {
    this.#control = control;
    this.#counters = counters;
  }

  /** The event ring has something new. */
  raise(): void {
    this.#pending = true;
  }

  /** Wakes the application if anything was raised. */
  deliver(): void {
    if (!this.#pending) return;
    this.#pending = false;
    this.#counters[COUNTER.interrupts]++;
    Atomics.add(this.#control, WORD_INTERRUPTS, 1);
    Atomics.notify(this.#control, WORD_INTERRUPTS);
  }
}
