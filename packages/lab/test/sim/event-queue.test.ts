import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EventQueue } from '../../src/sim/event-queue.js';

test('events run by time, and those of one time in the order they were scheduled', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 300 }), (times) => {
      const queue = new EventQueue();
      const ran: number[] = [];
      for (const [i, time] of times.entries()) queue.at(time, () => ran.push(i));
      queue.run();
      const expected = times.map((time, i) => ({ time, i })).sort((a, b) => a.time - b.time || a.i - b.i);
      expect(ran).toEqual(expected.map(({ i }) => i));
    }),
  );
});

test('an event may schedule others, also in its own time, and they run behind those that wait', () => {
  const queue = new EventQueue();
  const ran: string[] = [];
  queue.at(5, () => {
    ran.push('a');
    queue.after(0, () => ran.push('c'));
    queue.at(1, () => ran.push('d')); // The past is now.
  });
  queue.at(5, () => ran.push('b'));
  queue.run();
  expect(ran).toEqual(['a', 'b', 'c', 'd']);
  expect(queue.nowNs).toBe(5);
});

test('a run ends at its limits and time with it', () => {
  const queue = new EventQueue();
  let ticks = 0;
  const tick = (): void => {
    ticks++;
    queue.after(10, tick);
  };
  queue.at(0, tick);
  expect(queue.run({ untilNs: 95 })).toBe(10);
  expect(queue.nowNs).toBe(95);
  expect(queue.nextNs).toBe(100);
  expect(queue.run({ eventsMax: 3 })).toBe(3);
  expect(queue.run({ done: () => ticks >= 20 })).toBe(7);
});

/** The same by sorting: what `EventQueue` has to agree with. */
class SortedEvents {
  nowNs = 0;
  readonly #events: { time: number; sequence: number; action: () => void }[] = [];
  #sequence = 0;

  get nextNs(): number {
    return this.#events[0]?.time ?? Number.POSITIVE_INFINITY;
  }

  at(timeNs: number, action: () => void): void {
    this.#events.push({ time: Math.max(timeNs, this.nowNs), sequence: this.#sequence++, action });
    this.#events.sort((a, b) => a.time - b.time || a.sequence - b.sequence);
  }

  step(): boolean {
    const event = this.#events.shift();
    if (event === undefined) return false;
    this.nowNs = event.time;
    event.action();
    return true;
  }
}

/** What an event does: schedules others in so many nanoseconds (the past is now), looks at the next time, steps from within, throws. */
type Deed = readonly [delays: readonly number[], looks: boolean, nests: boolean, throws: boolean];

/** What happens when `deeds` are done in turn, one an event, after those that begin it all. */
function happenings(queue: EventQueue | SortedEvents, begin: readonly number[], deeds: readonly Deed[]): string[] {
  const seen: string[] = [];
  let scheduled = 0;
  let done = 0;
  const schedule = (timeNs: number): void => {
    const number = scheduled++;
    queue.at(timeNs, () => act(number));
  };
  const act = (number: number): void => {
    seen.push(`${number} at ${queue.nowNs}`);
    const deed = deeds[done++];
    if (deed === undefined) return;
    const [delays, looks, nests, throws] = deed;
    if (looks) seen.push(`next ${queue.nextNs}`);
    for (const delay of delays) schedule(queue.nowNs + delay);
    if (nests) seen.push(`nested ${queue.step()}`);
    if (looks) seen.push(`next ${queue.nextNs}`);
    if (throws) throw new Error('deed');
  };
  for (const timeNs of begin) schedule(timeNs);
  for (let isLeft = true; isLeft; ) {
    try {
      isLeft = queue.step();
    } catch {
      seen.push('thrown');
    }
    seen.push(`next ${queue.nextNs}`);
  }
  return seen;
}

test('whatever events do, order and times are those of a sorted list', () => {
  const deed = fc.tuple(
    fc.array(fc.integer({ min: -2, max: 9 }), { maxLength: 4 }),
    fc.boolean(),
    fc.boolean(),
    fc.boolean(),
  );
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 200 }),
      fc.array(deed, { maxLength: 200 }),
      (begin, deeds) => {
        expect(happenings(new EventQueue(), begin, deeds)).toEqual(happenings(new SortedEvents(), begin, deeds));
      },
    ),
  );
});

test('hundreds of events for the present moment run in order, whatever has run before', () => {
  const queue = new EventQueue();
  const ran: number[] = [];
  queue.at(7, () => {
    for (let i = 0; i < 50; i++) queue.after(0, () => ran.push(i));
  });
  queue.run({ eventsMax: 31 });
  for (let i = 50; i < 300; i++) queue.after(0, () => ran.push(i));
  queue.at(8, () => ran.push(300));
  queue.run();
  expect(ran).toEqual(Array.from({ length: 301 }, (_, i) => i));
});

test('time does not run backwards', () => {
  const queue = new EventQueue();
  queue.at(10, () => {});
  queue.at(20, () => {});
  queue.run({ untilNs: 15 });
  expect(queue.run({ untilNs: 5 })).toBe(0);
  expect(queue.nowNs).toBe(15);
});
