import { expect, test } from 'vitest';
import { Deadlines } from '../../src/nic/deadlines.js';
import type { Timed } from '../../src/qp/host.js';

const NEVER = Number.POSITIVE_INFINITY;

function timer(deadlineNs: number, log: number[]): Timed {
  const timed: Timed = {
    deadlineNs,
    onDeadline: (now) => {
      log.push(now);
      timed.deadlineNs = NEVER;
    },
  };
  return timed;
}

test('a deadline that moves later fires once, at its new time; the old entry only wakes the NIC', () => {
  const log: number[] = [];
  const deadlines = new Deadlines();
  const moved = timer(10, log);
  deadlines.arm(moved);
  moved.deadlineNs = 25;
  deadlines.arm(moved);
  expect(deadlines.nextNs).toBe(10);
  deadlines.fire(10);
  expect([log, deadlines.nextNs]).toEqual([[], 25]);
  deadlines.fire(30);
  expect([log, deadlines.nextNs]).toEqual([[30], NEVER]);
});

test('what is forgotten does not fire, whichever of its entries comes up; the others do', () => {
  const log: number[] = [];
  const deadlines = new Deadlines();
  const forgotten = timer(20, log);
  deadlines.arm(forgotten);
  forgotten.deadlineNs = 10;
  deadlines.arm(forgotten);
  deadlines.arm(timer(15, log));
  deadlines.forget(forgotten);
  for (const now of [10, 15, 20]) deadlines.fire(now);
  expect([log, deadlines.nextNs]).toEqual([[15], NEVER]);
});
