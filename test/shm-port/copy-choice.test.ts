/** Which way of copying a port takes, by what both cost. */

import { describe, expect, it } from 'vitest';
import { CopyChoice } from '../../src/port/shm/copy-choice.js';

const PACKETS = 60;

/** Writes batches, each packet for as many nanoseconds as its way costs: `write` returns how many of them went past the cache. */
function writer(cost: { past: number; usual: number }) {
  let timeNs = 0;
  let looks = 0;
  const choice = new CopyChoice(() => {
    looks++;
    return timeNs;
  });
  const write = (batches: number) => {
    let past = 0;
    for (let i = 0; i < batches; i++) {
      choice.begins();
      if (choice.isPast) past++;
      timeNs += PACKETS * (choice.isPast ? cost.past : cost.usual);
      choice.ends(PACKETS);
      timeNs += 1e6; // What happens between batches is nobody's cost.
    }
    return past;
  };
  return { write, looks: () => looks };
}

describe('the choice of a copy', () => {
  it.each([
    ['four times cheaper', 350, 1_000],
    ['a quarter cheaper', 750, 1_000],
    ['cheaper by less than the reader pays', 900, 0],
    ['dearer', 1_200, 0],
  ])('takes the way past the cache by its cost: %s', (_, past, chosen) => {
    const { write } = writer({ past, usual: 1_000 });
    expect(write(16)).toBe(8); // The trial.
    expect(write(1_000)).toBe(chosen);
  });

  it('tries again, and follows the machine to other processors', () => {
    const cost = { past: 350, usual: 1_000 };
    const { write } = writer(cost);
    write(1_000);
    cost.usual = 300;
    write(1_100);
    expect(write(500)).toBeLessThanOrEqual(8); // A trial at most.
    cost.usual = 1_000;
    write(1_100);
    expect(write(500)).toBeGreaterThanOrEqual(492);
  });

  it('is not moved by batches that were interrupted', () => {
    let timeNs = 0;
    const choice = new CopyChoice(() => timeNs);
    for (let i = 0; i < 16; i++) {
      choice.begins();
      timeNs += i === 4 || i === 6 ? 50e6 : PACKETS * (choice.isPast ? 350 : 1_000);
      choice.ends(PACKETS);
    }
    expect(choice.isPast).toBe(true);
  });

  it('reads the clock in trials alone', () => {
    const { write, looks } = writer({ past: 1, usual: 2 });
    write(16);
    expect(looks()).toBe(32);
    write(1_000);
    expect(looks()).toBe(32);
  });
});
