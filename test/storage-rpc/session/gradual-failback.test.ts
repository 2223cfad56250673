import { expect, test } from 'vitest';
import { GradualFailback } from '../../../src/storage-rpc/session/gradual-failback.js';

const SECOND = 1e9;

test('100 connections move by 5 a second', () => {
  const it = new GradualFailback({ connections: 100 }, 0);
  const begun: number[] = [];
  for (let second = 0; it.state === 'moving'; second++) {
    begun.push(it.due(second * SECOND));
    expect(it.due(second * SECOND + 1)).toBe(0);
  }
  expect(begun).toEqual(Array(20).fill(5));
  expect(it.deadlineNs).toBe(Number.POSITIVE_INFINITY);
});

test('a few connections move one at a time, and none are done at once', () => {
  const it = new GradualFailback({ connections: 3 }, 0);
  expect([0, 1, 2].map((second) => it.due(second * SECOND))).toEqual([1, 1, 1]);
  expect(it.state).toBe('done');
  expect(new GradualFailback({ connections: 0 }, 0).state).toBe('done');
});

test('freezes when more than 5 % of what moved within 10 s has failed, and not before', () => {
  const it = new GradualFailback({ connections: 100 }, 0);
  for (let i = 0; i < 19; i++) it.onMoved(SECOND);
  it.onFailed(2 * SECOND);
  expect(it.state).toBe('moving'); // 1 of 20.
  it.onFailed(2 * SECOND);
  expect(it.state).toBe('aborted');
  expect(it.due(100 * SECOND)).toBe(0);
});

test('old failures do not count', () => {
  const it = new GradualFailback({ connections: 100 }, 0);
  for (let i = 0; i < 40; i++) it.onMoved(0);
  it.onFailed(0);
  it.onFailed(0);
  for (let i = 0; i < 40; i++) it.onMoved(20 * SECOND);
  it.onFailed(20 * SECOND);
  expect(it.state).toBe('moving');
});

test('the first one to fail freezes it: nothing has shown yet that moving works', () => {
  const it = new GradualFailback({ connections: 100 }, 0);
  it.due(0);
  it.onFailed(0);
  expect(it.state).toBe('aborted');
});
