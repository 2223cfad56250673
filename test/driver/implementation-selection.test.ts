/** What the selection of implementations does around each of them. */

import { expect, test } from 'vitest';
import { ImplementationSelection, type SelectionRules } from '../../src/driver/implementation-selection.js';
import { cleanVectorState } from '../../src/driver/vector-state.js';

interface Named {
  readonly name: string;
}

const RULES = {
  what: 'name',
  variable: 'ROCEV2_TEST_NAME',
  isCorrect: ({ name }: Named) => name !== 'wrong',
  failure: 'is wrong',
  costOf: () => 1,
} as const;

const select = (rules: Partial<SelectionRules<Named>> & Pick<SelectionRules<Named>, 'candidates'>, wanted = '') =>
  new ImplementationSelection({ ...RULES, ...rules }).select(wanted);

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
  const candidates = Object.fromEntries(
    ['slow', 'wrong', 'missing', 'quick'].map((name) => [name, candidate(name)] as const),
  );
  const clean = () => void log.push('clean');
  expect(select({ candidates, costOf, clean })).toEqual({ name: 'quick' });
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
  const wrong = () => ({ name: 'wrong' });
  const tried: string[] = [];
  const last = () => {
    tried.push('last');
    return { name: 'last' };
  };
  const lastResort = 'last';
  expect(select({ candidates: { wrong, quick: () => ({ name: 'quick' }), last }, lastResort }).name).toBe('quick');
  expect(tried).toEqual([]);
  expect(select({ candidates: { wrong, last }, lastResort }).name).toBe('last');
  expect(tried).toEqual(['last']);
  expect(() => select({ candidates: { wrong, last: wrong }, lastResort })).toThrow(
    'no name here is right: each is wrong',
  );
});

test('a name is tried once, also one from the environment variable; another name is tried again', () => {
  const tried: string[] = [];
  const candidate = (name: string) => () => {
    tried.push(name);
    return { name };
  };
  const selection = new ImplementationSelection({ ...RULES, candidates: { a: candidate('a'), b: candidate('b') } });
  process.env['ROCEV2_TEST_NAME'] = 'b';
  expect([selection.select().name, selection.select('b').name, selection.select().name]).toEqual(['b', 'b', 'b']);
  expect(tried).toEqual(['b']);
  delete process.env['ROCEV2_TEST_NAME'];
  expect(selection.select('a').name).toBe('a');
  expect(tried).toEqual(['b', 'a']);
});

test('the registers can be cleaned anywhere', () => {
  expect(() => cleanVectorState()).not.toThrow();
});
