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
