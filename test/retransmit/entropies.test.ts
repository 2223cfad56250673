/** How ways are chosen: each choice against its published rule. */

import { describe, expect, it } from 'vitest';
import { type EntropyChoice, RoundRobinEntropies, SingleEntropy } from '../../src/retransmit/entropy-choice.js';
import { PathPenaltyBitmap } from '../../src/retransmit/path-penalty-bitmap.js';
import { RecycledEntropies } from '../../src/retransmit/recycled-entropies.js';

const FREEZE_NS = 1000;
const take = (choice: EntropyChoice, count: number, now = 0) => Array.from({ length: count }, () => choice.next(now));

describe('one way, and ways in turn', () => {
  it('do not care what becomes of packets', () => {
    for (const [choice, ways] of [
      [new SingleEntropy(), [0, 0, 0, 0]],
      [new RoundRobinEntropies(3), [0, 1, 2, 0]],
    ] as const) {
      choice.onLost(1);
      choice.onMarked(1);
      choice.onTrimmed(1);
      choice.onTimeout(0);
      expect(take(choice, 4)).toEqual(ways);
    }
  });
});

describe('penalized ways', () => {
  it.each([
    ['onMarked', 1],
    ['onTrimmed', 4],
    ['onLost', 15],
  ] as const)('%s: the way is passed over %i times, and then used as before', (event, times) => {
    const choice = new PathPenaltyBitmap(4);
    choice[event](2);
    const ways = take(choice, 3 * times + 8);
    expect(ways.slice(0, 3 * times + 2)).not.toContain(2);
    expect(ways.slice(3 * times)).toEqual([0, 1, 2, 3, 0, 1, 2, 3]);
  });

  it('ends where all ways are as bad as can be', () => {
    const choice = new PathPenaltyBitmap(8);
    for (let i = 0; i < 1000; i++) choice.onLost(i % 8);
    expect(new Set(take(choice, 8)).size).toBe(8);
  });
});

describe('recycled ways', () => {
  it('explore in turn while nothing has come back', () => {
    expect(take(new RecycledEntropies(4, FREEZE_NS), 6)).toEqual([0, 1, 2, 3, 0, 1]);
  });

  it('use a good way again once, oldest first, and none that was marked or lost', () => {
    const choice = new RecycledEntropies(64, FREEZE_NS);
    take(choice, 10);
    choice.onGood(7, 0);
    choice.onMarked(3);
    choice.onLost(4);
    choice.onGood(5, 0);
    expect(take(choice, 4)).toEqual([7, 5, 10, 11]);
  });

  it('remember the last eight', () => {
    const choice = new RecycledEntropies(64, FREEZE_NS);
    for (let way = 20; way < 30; way++) choice.onGood(way, 0);
    expect(take(choice, 9)).toEqual([22, 23, 24, 25, 26, 27, 28, 29, 0]);
  });

  it('freeze at a timeout: good ways again and again, nothing explored; afterwards sixteen packets explore', () => {
    const choice = new RecycledEntropies(64, FREEZE_NS);
    for (let way = 20; way < 28; way++) choice.onGood(way, 0);
    choice.onTimeout(100);
    expect(new Set(take(choice, 40, 200))).toEqual(new Set([20, 21, 22, 23, 24, 25, 26, 27]));
    choice.onGood(21, 300);
    expect(choice.isFreezing).toBe(true);
    choice.onGood(21, 100 + FREEZE_NS);
    expect(choice.isFreezing).toBe(false);
    expect(take(choice, 17)).toEqual([...Array.from({ length: 16 }, (_, i) => i), 21]);
  });

  it('explore after a timeout before which nothing came back', () => {
    const choice = new RecycledEntropies(4, FREEZE_NS);
    choice.onTimeout(0);
    expect(take(choice, 5)).toEqual([0, 1, 2, 3, 0]);
  });
});
