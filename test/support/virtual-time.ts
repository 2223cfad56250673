/** Promises in virtual time: the clock of an event queue, and running it until a promise has settled. */

import type { CmClock } from '../../src/cm/clock.js';
import type { EventQueue } from '../../src/sim/event-queue.js';

export function clockOf(events: EventQueue): CmClock {
  return {
    nowNs: () => events.nowNs,
    wakeAt: (timeNs, wake) => {
      let cancelled = false;
      events.at(timeNs, () => {
        if (!cancelled) wake();
      });
      return () => {
        cancelled = true;
      };
    },
  };
}

/** Lets promises run until nothing more happens without time passing. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Runs virtual time, and promises between its events, until `outcome` has settled. */
export async function until<T>(events: EventQueue, outcome: Promise<T>, eventsMax = 5_000_000): Promise<T> {
  let settled = false;
  const mark = () => {
    settled = true;
  };
  outcome.then(mark, mark);
  for (let count = 0; ; count++) {
    await settle();
    if (settled) return outcome;
    if (count > eventsMax || !events.step()) throw new Error('nothing moves, and the promise is not settled');
  }
}

/** Lets so much virtual time pass. */
export function pass(events: EventQueue, ns: number): Promise<void> {
  return until(events, new Promise<void>((resolve) => events.after(ns, resolve)));
}
