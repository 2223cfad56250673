/**
 * Events in an order that follows from the network: at one time first the frames that arrive, by the number of their
 * cable, then the nodes' own events in the order in which they were scheduled. The events of a node at one time then do
 * not depend on other nodes, so that a network can be divided among several queues: see logical-process.ts.
 */

import type { ArrivalSchedule } from './cable.js';
import type { EventQueue } from './event-queue.js';
import { TimeHeap } from './time-heap.js';

const NEVER = Number.POSITIVE_INFINITY;

export class ArrivalQueue {
  readonly #events: EventQueue;
  /** Ordered by time, then by the number of the cable: a cable has only its oldest frame there. */
  readonly #arrivals = new TimeHeap();

  constructor(events: EventQueue) {
    this.#events = events;
  }

  cable(number: number): ArrivalSchedule {
    return { at: (timeNs, action) => this.#arrivals.add(timeNs, number, action) };
  }

  get nextNs(): number {
    return Math.min(this.#arrivals.nextNs, this.#events.nextNs);
  }

  run(beforeNs: number, untilNs: number): void {
    const events = this.#events;
    const arrivals = this.#arrivals;
    for (;;) {
      const arrivalNs = arrivals.nextNs;
      const eventNs = events.nextNs;
      const nextNs = arrivalNs <= eventNs ? arrivalNs : eventNs;
      if (nextNs >= beforeNs || nextNs > untilNs || nextNs === NEVER) return;
      if (arrivalNs <= eventNs) {
        events.passBefore(arrivalNs);
        arrivals.take()();
      } else events.step();
    }
  }
}
