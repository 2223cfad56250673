import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BusyTime } from '../../src/sim/busy-time.js';
import { EventQueue } from '../../src/sim/event-queue.js';

/** Sends one frame after another; each takes a time. */
class Port {
  readonly #waiting: number[] = [];
  readonly #busy: BusyTime;
  readonly #depart: (frame: number) => number;

  constructor(events: EventQueue, depart: (frame: number) => number) {
    this.#busy = new BusyTime(events, () => this.#next());
    this.#depart = depart;
  }

  send(frame: number): void {
    this.#waiting.push(frame);
    if (this.#busy.isOver) this.#next();
    else this.#busy.await();
  }

  #next(): void {
    const frame = this.#waiting.shift();
    if (frame === undefined) return;
    this.#busy.begin(this.#depart(frame));
    if (this.#waiting.length > 0) this.#busy.await();
  }
}

/** As a sparse queue, but a reserved place has passed as soon as its time has come. */
class WrongQueue extends EventQueue {
  override hasPassed(timeNs: number): boolean {
    return timeNs <= this.nowNs;
  }
}

const PORTS = 3;
type Traffic = readonly [starts: number[], durations: number[]];

/** Frames come at `starts` and go through ports in turn; what leaves where and when, in order, and how many events ran. */
function departures([starts, durations]: Traffic, events: EventQueue): { seen: string[]; count: number } {
  const seen: string[] = [];
  const hops = new Map<number, number>();
  const ports = Array.from(
    { length: PORTS },
    (_, port): Port =>
      new Port(events, (frame) => {
        seen.push(`${frame} leaves ${port} at ${events.nowNs}`);
        const freeNs = events.nowNs + durations[(frame + port) % durations.length];
        const hop = hops.get(frame) ?? 0;
        hops.set(frame, hop + 1);
        const next = (port + 1 + (frame % 2)) % PORTS;
        // At the next port when it has left, or some time later, or, now and then, at once.
        if (hop < 4) events.at(frame % 5 === 0 ? events.nowNs : freeNs + (frame % 3), () => ports[next].send(frame));
        return freeNs;
      }),
  );
  for (const [frame, startNs] of starts.entries()) events.at(startNs, () => ports[frame % PORTS].send(frame));
  return { count: events.run(), seen };
}

const traffic: fc.Arbitrary<Traffic> = fc.tuple(
  fc.array(fc.integer({ min: 0, max: 12 }), { minLength: 1, maxLength: 40 }),
  fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 5 }),
);

test('a sparse queue has fewer events, and what happens, and its order, is the same', () => {
  let saved = 0;
  fc.assert(
    fc.property(traffic, (of) => {
      const all = departures(of, new EventQueue());
      const sparse = departures(of, new EventQueue({ isSparse: true }));
      expect(sparse.seen).toEqual(all.seen);
      saved += all.count - sparse.count;
    }),
  );
  expect(saved).toBeGreaterThan(0);
});

test('a port that counts as free when its time has come, whatever runs before at that time, does something else', () => {
  const differs = (of: Traffic): boolean =>
    departures(of, new EventQueue()).seen.join() !== departures(of, new WrongQueue({ isSparse: true })).seen.join();
  expect(fc.sample(traffic, { numRuns: 200, seed: 1 }).some(differs)).toBe(true);
});

test('a reserved place has passed or not by what runs now', () => {
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
