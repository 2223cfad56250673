/** Promises in virtual time: running an event queue until a promise has settled. */

import type { EventQueue } from '../../packages/lab/src/sim/event-queue.js';
import { nextTurn, runUntilSettled } from '../../packages/lab/src/sim/promises.js';

/** Lets promises run until nothing more happens without time passing. */
export const settle = nextTurn;

/** The verdict over a run in virtual time that used up its events: something goes on for ever, or far longer than the test allows. */
export class DidNotSettle extends Error {
  override name = 'DidNotSettle';

  constructor(events: EventQueue, eventsMax: number) {
    super(
      `did not settle: after ${eventsMax} events, at ${Math.round(events.nowNs)} ns of virtual time, there is still something to do`,
    );
  }
}

/**
 * Runs virtual time until nothing is left to do, `untilNs` is reached or `done()` holds, whichever comes first. Throws `DidNotSettle` if
 * none of them has come after `eventsMax` events (default 2,000,000, some seconds).
 */
export function runToRest(
  events: EventQueue,
  limits: { untilNs?: number; eventsMax?: number; done?: () => boolean } = {},
): void {
  const { untilNs = Number.POSITIVE_INFINITY, eventsMax = 2_000_000, done } = limits;
  const count = events.run({ ...limits, eventsMax });
  if (count < eventsMax || events.nextNs === Number.POSITIVE_INFINITY || events.nextNs > untilNs || done?.()) return;
  throw new DidNotSettle(events, eventsMax);
}

/** Runs virtual time, and promises between its events, until `outcome` has settled. Throws `DidNotSettle` after `eventsMax` events. */
export async function until<T>(events: EventQueue, outcome: Promise<T>, eventsMax = 2_000_000): Promise<T> {
  const ended = await runUntilSettled(events, outcome, eventsMax);
  if (ended === 'settled') return outcome;
  if (ended === 'limit') throw new DidNotSettle(events, eventsMax);
  throw new Error('nothing moves, and the promise is not settled');
}

/** Lets so much virtual time pass. */
export function pass(events: EventQueue, ns: number): Promise<void> {
  return until(events, new Promise<void>((resolve) => events.after(ns, resolve)));
}
