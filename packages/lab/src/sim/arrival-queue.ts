/**
 * Events in an order that follows from the network: at one time first the frames that arrive, by the number of their cable, then the nodes' own events in the order in which they
 * were scheduled. What happens at a node at one time then does not depend on what other nodes do, so that a network can be divided among several queues: see divided-network.ts.
 *
 * A binary heap of cables, ordered by (time, number): a cable has its oldest frame there, and nothing else.
 */

import type { ArrivalSchedule } from './cable.js';
import type { EventQueue } from './event-queue.js';

const NEVER = Number.POSITIVE_INFINITY;
const NOTHING = (): void => {};

/** Arrivals of frames beside the events of nodes, which are in `events`. */
export class ArrivalQueue {
  readonly #events: EventQueue;
  #times = new Float64Array(64);
  #cables = new Int32Array(64);
  readonly #actions: Array<() => void> = [];
  #size = 0;

  constructor(events: EventQueue) {
    this.#events = events;
  }

  /** Where the cable of this number schedules its arrivals, one at a time. */
  cable(number: number): ArrivalSchedule {
    return { at: (timeNs, action) => this.#add(timeNs, number, action) };
  }

  /** Time of the next arrival or event; Infinity when there is none. */
  get nextNs(): number {
    return Math.min(this.#size === 0 ? NEVER : this.#times[0], this.#events.nextNs);
  }

  /** Runs what happens before `beforeNs` and not after `untilNs`. */
  run(beforeNs: number, untilNs: number): void {
    const events = this.#events;
    for (;;) {
      const arrivalNs = this.#size === 0 ? NEVER : this.#times[0];
      const eventNs = events.nextNs;
      const nextNs = arrivalNs <= eventNs ? arrivalNs : eventNs;
      if (nextNs >= beforeNs || nextNs > untilNs || nextNs === NEVER) return;
      if (arrivalNs <= eventNs) {
        const action = this.#actions[0];
        events.pass(arrivalNs);
        this.#removeFirst();
        action();
      } else events.step();
    }
  }

  #add(time: number, cable: number, action: () => void): void {
    if (this.#size === this.#times.length) this.#grow();
    const times = this.#times;
    const cables = this.#cables;
    const actions = this.#actions;
    let hole = this.#size++;
    while (hole > 0) {
      const parent = (hole - 1) >> 1;
      if ((times[parent] - time || cables[parent] - cable) < 0) break;
      times[hole] = times[parent];
      cables[hole] = cables[parent];
      actions[hole] = actions[parent];
      hole = parent;
    }
    times[hole] = time;
    cables[hole] = cable;
    actions[hole] = action;
  }

  /** The last element falls from the top to where it belongs. */
  #removeFirst(): void {
    const size = --this.#size;
    const times = this.#times;
    const cables = this.#cables;
    const actions = this.#actions;
    const time = times[size];
    const cable = cables[size];
    const action = actions[size];
    actions[size] = NOTHING; // What ran must not be kept alive.
    if (size === 0) return;
    let hole = 0;
    for (let child = 1; child < size; child = 2 * hole + 1) {
      const other = child + 1;
      if (other < size && (times[other] - times[child] || cables[other] - cables[child]) < 0) child = other;
      if ((times[child] - time || cables[child] - cable) > 0) break;
      times[hole] = times[child];
      cables[hole] = cables[child];
      actions[hole] = actions[child];
      hole = child;
    }
    times[hole] = time;
    cables[hole] = cable;
    actions[hole] = action;
  }

  #grow(): void {
    const times = new Float64Array(this.#times.length * 2);
    times.set(this.#times);
    this.#times = times;
    const cables = new Int32Array(times.length);
    cables.set(this.#cables);
    this.#cables = cables;
  }
}
