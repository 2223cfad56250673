import type { Clock } from '../../../src/core/clock.js';
import type { EventQueue } from '../../lab/src/sim/event-queue.js';

const MS = 1e6;

/** The clock of a process that can be suspended: afterwards it lags behind the clocks of others. */
export class StoppableClock implements Clock {
  readonly #events: EventQueue;
  #lagNs = 0;
  #stoppedNs: number | undefined;

  constructor(events: EventQueue) {
    this.#events = events;
  }

  nowNs(): number {
    return this.#stoppedNs ?? this.#events.nowNs - this.#lagNs;
  }

  wakeAt(timeNs: number, wake: () => void): () => void {
    let isCancelled = false;
    const look = () => {
      if (isCancelled) return;
      if (this.nowNs() >= timeNs) wake();
      else this.#events.after(this.#stoppedNs === undefined ? Math.max(1, timeNs - this.nowNs()) : MS, look);
    };
    this.#events.after(Math.max(0, timeNs - this.nowNs()), look);
    return () => {
      isCancelled = true;
    };
  }

  stop(): void {
    this.#stoppedNs ??= this.nowNs();
  }

  goOn(): void {
    if (this.#stoppedNs === undefined) return;
    this.#lagNs = this.#events.nowNs - this.#stoppedNs;
    this.#stoppedNs = undefined;
  }
}
