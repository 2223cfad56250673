/** The checker itself: what it must accept, and what it must not. */

import { describe, expect, it } from 'vitest';
import { isLinearizable, type Operation } from './linearizable.js';

const set = (at: [number, number?], value: string): Operation => op(at, { kind: 'set', value });
const get = (at: [number, number?], value?: string): Operation => op(at, { kind: 'get', value });
const remove = (at: [number, number?], existed?: boolean): Operation => op(at, { kind: 'delete', existed });
const cas = (at: [number, number?], expected: string | undefined, value: string, isDone?: boolean): Operation =>
  op(at, { kind: 'compareAndSet', expected, value, isDone });

function op([calledAt, returnedAt]: [number, number?], action: Operation['action']): Operation {
  return { client: '?', calledAt, returnedAt, action };
}

describe('the checker accepts', () => {
  it.each<[string, Operation[]]>([
    ['nothing', []],
    ['a value that was written', [set([1, 2], 'a'), get([3, 4], 'a')]],
    ['either value during a write', [set([1, 2], 'a'), set([3, 8], 'b'), get([4, 5], 'a'), get([6, 7], 'b')]],
    ['a write without a return that was seen', [set([1], 'a'), get([2, 3]), get([4, 5], 'a')]],
    ['a write without a return that was never seen', [set([1], 'a'), get([2, 3]), get([4, 5])]],
    ['a delete', [set([1, 2], 'a'), remove([3, 4], true), remove([5, 6], false), get([7, 8])]],
    ['one winner', [set([1, 2], 'a'), cas([3, 6], 'a', 'b', true), cas([4, 5], 'a', 'c', false), get([7, 8], 'b')]],
    ['a winner without a return', [set([1, 2], 'a'), cas([3], 'a', 'b'), get([4, 5], 'b')]],
  ])('%s', (_name, history) => expect(isLinearizable(history)).toBe(true));
});

describe('the checker refuses', () => {
  it.each<[string, Operation[]]>([
    ['a value that nobody wrote', [set([1, 2], 'a'), get([3, 4], 'x')]],
    ['a value that was replaced', [set([1, 2], 'a'), set([3, 4], 'b'), get([5, 6], 'a')]],
    ['a value from the future', [get([1, 2], 'a'), set([3, 4], 'a')]],
    ['the new value and then the old one', [set([1, 2], 'a'), set([3, 8], 'b'), get([4, 5], 'b'), get([6, 7], 'a')]],
    ['a lost write', [set([1, 2], 'a'), get([3, 4])]],
    ['an entry after its delete', [set([1, 2], 'a'), remove([3, 4], true), get([5, 6], 'a')]],
    ['a delete that found nothing', [set([1, 2], 'a'), remove([3, 4], false)]],
    ['two winners', [set([1, 2], 'a'), cas([3, 6], 'a', 'b', true), cas([4, 5], 'a', 'c', true)]],
    ['no winner', [set([1, 2], 'a'), cas([3, 4], 'a', 'b', false)]],
  ])('%s', (_name, history) => expect(isLinearizable(history)).toBe(false));
});
