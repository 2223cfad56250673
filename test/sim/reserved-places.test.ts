/** Events that are scheduled only if they turn out to be needed: what happens, and in which order, is what it would be if all were there. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EventQueue } from '../../src/sim/event-queue.js';

/** A port sends one frame after another, each of which takes a time; at the end of each a frame that waits goes, or nothing happens. */
interface Port {
  readonly waiting: number[];
  send(frame: number): void;
}

/** An event at the end of every frame. */
class EagerPort implements Port {
  readonly waiting: number[] = [];
  readonly #events: EventQueue;
  readonly #depart: (frame: number) => number;
  #isSending = false;

  constructor(events: EventQueue, depart: (frame: number) => number) {
    this.#events = events;
    this.#depart = depart;
  }

  send(frame: number): void {
    this.waiting.push(frame);
    if (!this.#isSending) this.#next();
  }

  #next(): void {
    const frame = this.waiting.shift();
    this.#isSending = frame !== undefined;
    if (frame !== undefined) this.#events.at(this.#depart(frame), () => this.#next());
  }
}

/** One only where a frame waits. `isPassed`: whether the end has come; a way to be wrong. */
class LazyPort implements Port {
  readonly waiting: number[] = [];
  readonly #events: EventQueue;
  readonly #depart: (frame: number) => number;
  readonly #isPassed: (freeNs: number, place: number) => boolean;
  #isAwaited = false;
  #freeNs = -1;
  #place = 0;

  constructor(
    events: EventQueue,
    depart: (frame: number) => number,
    isPassed: (freeNs: number, place: number) => boolean = (freeNs, place) => events.hasPassed(freeNs, place),
  ) {
    this.#events = events;
    this.#depart = depart;
    this.#isPassed = isPassed;
  }

  send(frame: number): void {
    this.waiting.push(frame);
    if (this.#isAwaited) return;
    if (this.#isPassed(this.#freeNs, this.#place)) this.#next();
    else this.#await();
  }

  #next(): void {
    const frame = this.waiting.shift();
    if (frame === undefined) return;
    this.#freeNs = this.#depart(frame);
    this.#place = this.#events.reserve();
    if (this.waiting.length > 0) this.#await();
  }

  #await(): void {
    this.#isAwaited = true;
    this.#events.atReserved(this.#freeNs, this.#place, () => {
      this.#isAwaited = false;
      this.#next();
    });
  }
}

const PORTS = 3;

/** Frames come at `starts` and go through ports in turn; what leaves where and when, in order. */
function departures(
  starts: readonly number[],
  durations: readonly number[],
  make: (events: EventQueue, depart: (frame: number) => number) => Port,
): string[] {
  const events = new EventQueue();
  const seen: string[] = [];
  const hops = new Map<number, number>();
  const ports = Array.from({ length: PORTS }, (_, port) =>
    make(events, (frame) => {
      seen.push(`${frame} leaves ${port} at ${events.nowNs}`);
      const freeNs = events.nowNs + durations[(frame + port) % durations.length];
      const hop = hops.get(frame) ?? 0;
      hops.set(frame, hop + 1);
      // The next port hears of it when it has left, or some time later, or, now and then, at once.
      if (hop < 4) {
        const next = (port + 1 + (frame % 2)) % PORTS;
        events.at(frame % 5 === 0 ? events.nowNs : freeNs + (frame % 3), () => ports[next].send(frame));
      }
      return freeNs;
    }),
  );
  for (const [frame, startNs] of starts.entries()) events.at(startNs, () => ports[frame % PORTS].send(frame));
  events.run();
  return seen;
}

const traffic = fc.tuple(
  fc.array(fc.integer({ min: 0, max: 12 }), { minLength: 1, maxLength: 40 }),
  fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 5 }),
);

test('a port whose events are scheduled when they are needed does what one does that has them all', () => {
  fc.assert(
    fc.property(traffic, ([starts, durations]) => {
      const eager = departures(starts, durations, (events, depart) => new EagerPort(events, depart));
      expect(departures(starts, durations, (events, depart) => new LazyPort(events, depart))).toEqual(eager);
    }),
    { numRuns: 100 },
  );
});

test('a port that is free as soon as its time has come, whatever runs before at that time, does something else', () => {
  const differs = ([starts, durations]: readonly [number[], number[]]): boolean => {
    const eager = departures(starts, durations, (events, depart) => new EagerPort(events, depart));
    const lazy = departures(
      starts,
      durations,
      (events, depart) => new LazyPort(events, depart, (freeNs) => freeNs <= events.nowNs),
    );
    return JSON.stringify(lazy) !== JSON.stringify(eager);
  };
  expect(fc.sample(traffic, { numRuns: 200, seed: 1 }).some(differs)).toBe(true);
});

test('an end has passed or not by what runs now', () => {
  const queue = new EventQueue();
  const seen: boolean[] = [];
  let place = 0;
  const look = (): void => {
    seen.push(queue.hasPassed(5, place));
  };
  queue.at(5, look);
  place = queue.reserve();
  queue.at(5, () => {
    look();
    queue.after(0, look);
  });
  look();
  queue.run({ untilNs: 4 });
  look();
  queue.run({ untilNs: 5 });
  look();
  expect(seen).toEqual([false, false, false, true, true, true]);
  queue.passBefore(9);
  expect(queue.hasPassed(9, place)).toBe(false);
  queue.pass(9);
  expect(queue.hasPassed(9, place)).toBe(true);
});
