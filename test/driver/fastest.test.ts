/** What the contest of implementations does around each of them. */

import { expect, test } from 'vitest';
import { type Contest, fastestOf } from '../../src/driver/fastest.js';
import { cleanVectorState } from '../../src/driver/vector-state.js';

interface Named {
  readonly name: string;
}

const CONTEST: Contest<Named> = {
  what: 'name',
  variable: 'NAME',
  isRight: ({ name }) => name !== 'wrong',
  wrong: 'is wrong',
};

test('cleans up behind each candidate, right or not, before the next is tried and behind the last', () => {
  const log: string[] = [];
  const candidate = (name: string) => () => {
    log.push(`try ${name}`);
    if (name === 'missing') throw new Error('there is none');
    return { name };
  };
  const costOf = ({ name }: Named) => {
    log.push(`measure ${name}`);
    return name === 'quick' ? 1 : 2;
  };
  const candidates = ['slow', 'wrong', 'missing', 'quick'].map(candidate);
  const clean = () => void log.push('clean');
  expect(fastestOf(CONTEST, candidates, costOf, { clean })).toEqual({ name: 'quick' });
  expect(log).toEqual([
    'try slow',
    'measure slow',
    'clean',
    'try wrong',
    'clean',
    'try missing',
    'clean',
    'try quick',
    'measure quick',
    'clean',
  ]);
});

test('the last resort is tried only where no candidate is right, and must be right itself', () => {
  const costOf = () => 1;
  const wrong = () => ({ name: 'wrong' });
  const tried: string[] = [];
  const lastResort = () => {
    tried.push('last');
    return { name: 'last' };
  };
  expect(fastestOf(CONTEST, [wrong, () => ({ name: 'quick' })], costOf, { lastResort }).name).toBe('quick');
  expect(tried).toEqual([]);
  expect(fastestOf(CONTEST, [wrong], costOf, { lastResort }).name).toBe('last');
  expect(tried).toEqual(['last']);
  expect(() => fastestOf(CONTEST, [wrong], costOf, { lastResort: wrong })).toThrow(
    'no name here is right: each is wrong',
  );
});

test('the registers can be cleaned anywhere', () => {
  expect(() => cleanVectorState()).not.toThrow();
});
