/**
 * Wakes an owner at the earliest requested time. Events cannot be cancelled, so a later timer is remembered and reused
 * after an earlier one; otherwise pacing would leave one event per packet until the ACK timeout.
 */

import type { EventQueue } from './event-queue.js';

export class WakeUp {
  readonly #events: EventQueue;
  readonly #action: () => void;
  #nextNs = Number.POSITIVE_INFINITY;
  readonly #scheduledNs: number[] = [];

  constructor(events: EventQueue, action: () => void) {
    this.#events = events;
    this.#action = action;
  }

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
    if (this.#nextNs > this.#events.nowNs) return; // An earlier wake-up has already served this request.
    this.#nextNs = Number.POSITIVE_INFINITY;
    this.#action();
  };
}
