import { describe, expect, it } from 'vitest';
import { NS_PER_MS } from '../../../src/core/units.js';
import { WaitedTime } from '../src/transfer/waited-time.js';

describe('the time that a latency test has waited', () => {
  function waited(limitMs: number) {
    let now = 7 * NS_PER_MS;
    const time = new WaitedTime(limitMs, () => now);
    return {
      time,
      /** Looks again after so long. */
      later(ms: number): boolean {
        now += ms * NS_PER_MS;
        return time.isOver();
      },
    };
  }

  it('is over after the limit, where the process looks again and again', () => {
    const { later } = waited(500);
    const looks = Array.from({ length: 500 }, () => later(1));
    expect(looks.indexOf(true)).toBe(499);
  });

  it('does not count a time in which the process stood still: what came meanwhile has not been looked at', () => {
    const { later, time } = waited(500);
    expect(later(60_000)).toBe(false);
    expect(time.leftMs).toBe(480);
    for (let stall = 0; stall < 23; stall++) expect(later(60_000)).toBe(false);
    expect(later(60_000)).toBe(true); // Each counts as one step: a process that never runs otherwise must end, too.
  });

  it('sleeps no longer than it counts', () => {
    const { later, time } = waited(500);
    expect(time.sleepMs).toBe(20);
    for (let step = 0; step < 24; step++) later(20);
    later(15);
    expect(time.sleepMs).toBe(5);
  });

  it('has no end without a limit', () => {
    const { later, time } = waited(Number.POSITIVE_INFINITY);
    expect(later(1e9)).toBe(false);
    expect(time.leftMs).toBe(Number.POSITIVE_INFINITY);
  });
});
