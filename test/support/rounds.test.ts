import { describe, expect, it } from 'vitest';
import { casesOfRound, parseRound, ROUNDS, seedOfRound, timesOfRound } from './rounds.js';

const ALL_ROUNDS = Array.from({ length: ROUNDS }, (_, round) => round);
const CASES = (count: number) => Array.from({ length: count }, (_, i) => i);

describe('rounds', () => {
  it.each([1, 2, 3, 4, 8, 40])('each of %i cases is in a round, and no round is empty', (count) => {
    const rounds = ALL_ROUNDS.map((round) => casesOfRound(CASES(count), round));
    expect([...new Set(rounds.flat())].sort((a, b) => a - b)).toEqual(CASES(count));
    for (const round of rounds) expect(round.length).toBeGreaterThan(0);
    expect(Math.max(...rounds.map(({ length }) => length))).toBe(Math.ceil(count / Math.min(count, ROUNDS)));
  });

  it('without a round everything runs, as often and with the seed that stands there', () => {
    expect(parseRound(undefined)).toBeUndefined();
    expect(parseRound('all')).toBeUndefined();
    expect([casesOfRound(CASES(5), undefined), timesOfRound(100, undefined), seedOfRound(2, undefined)]).toEqual([
      casesOfRound(CASES(5)),
      timesOfRound(100),
      seedOfRound(2),
    ]);
  });

  it('all rounds repeat at least as often as one run of everything, each with its own seed', () => {
    expect(timesOfRound(100, 0) * ROUNDS).toBeGreaterThanOrEqual(100);
    expect(new Set(ALL_ROUNDS.map((round) => seedOfRound(2, round))).size).toBe(ROUNDS);
  });

  it.each(['0', '6', '1.5', 'two', ''])('%j is no round', (text) => {
    expect(() => parseRound(text)).toThrow('ROUND must be all or 1 to 5');
  });
});
