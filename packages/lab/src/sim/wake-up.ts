/**
 * Wakes somebody at the earliest of the times he asked for. His timers move all the time, to a near one and back to the far one behind it; events cannot be taken back, so
 * the far one is remembered, and found again instead of scheduled a second time. Without that a host that paces its packets leaves an event for every packet until its ACK timeout.
 */

import type { EventQueue } from './event-queue.js';

/** One pending wake-up, at the earliest time asked for. */
export class WakeUp {
  readonly #events: EventQueue;
  readonly #action: () => void;
  #nextNs = Number.POSITIVE_INFINITY;
  /** Times of the events that have not run, the earliest last. A few. */
  readonly #scheduledNs: number[] = [];

  constructor(events: EventQueue, action: () => void) {
    this.#events = events;
    this.#action = action;
  }

  /** Calls the action at `timeNs`, unless it is called before; Infinity asks for nothing. After a call there is nothing pending. */
  notAfter(timeNs: number): void {
    if (timeNs >= this.#nextNs) return;
    this.#nextNs = timeNs;
    const scheduled = this.#scheduledNs;
    let place = scheduled.length;
    while (place > 0 && scheduled[place - 1] < timeNs) place--;
    if (place > 0 && scheduled[place - 1] === timeNs) return;
    scheduled.push(timeNs);
    for (let i = scheduled.length - 1; i > place; i--) scheduled[i] = scheduled[i - 1];
    scheduled[place] = timeNs;
    this.#events.at(timeNs, this.#run);
  }

  readonly #run = (): void => {
    this.#scheduledNs.pop();
    if (this.#nextNs > this.#events.nowNs) return; // It was asked for, and an earlier time has seen to it.
    this.#nextNs = Number.POSITIVE_INFINITY;
    this.#action();
  };
}
