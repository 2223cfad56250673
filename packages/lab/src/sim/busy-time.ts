/**
 * The time for which a port or a NIC is busy with a frame. Its end is an event only if somebody waits for it; the place
 * of that event in the order is reserved, so that all others happen as if it were always there.
 *
 * In a queue that is not sparse it always is: where promises run between events, their number matters.
 */

import type { EventQueue } from './event-queue.js';

const LONG_AGO = Number.NEGATIVE_INFINITY;

export class BusyTime {
  readonly #events: EventQueue;
  readonly #onEnd: () => void;
  #endNs = LONG_AGO;
  #place = 0;
  #isAwaited = false;

  constructor(events: EventQueue, onEnd: () => void) {
    this.#events = events;
    this.#onEnd = onEnd;
  }

  get isOver(): boolean {
    return !this.#isAwaited && this.#events.hasPassed(this.#endNs, this.#place);
  }

  /** Begins a time that ends at `endNs`. Only if the one before {@link isOver}. */
  begin(endNs: number): void {
    const events = this.#events;
    if (events.isSparse && endNs > events.nowNs) {
      this.#endNs = endNs;
      this.#place = events.reserve();
      return;
    }
    this.#isAwaited = true;
    events.at(endNs, this.#end);
  }

  /** Only if the time is not over. */
  await(): void {
    if (this.#isAwaited) return;
    this.#isAwaited = true;
    this.#events.atReserved(this.#endNs, this.#place, this.#end);
  }

  readonly #end = (): void => {
    this.#isAwaited = false;
    this.#endNs = LONG_AGO;
    this.#onEnd();
  };
}
