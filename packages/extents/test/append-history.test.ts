/** The checker itself: what it must accept, and what it must not. */

import { describe, expect, it } from 'vitest';
import { whyNotAppendOnly } from './append-history.js';

describe('the checker of appends', () => {
  const [a, b, c] = [1, 3, 5].map((at, k) => ({ id: 'abc'[k], calledAt: at, returnedAt: at + 1 }));
  const read = (calledAt: number, ids: string) => ({ calledAt, returnedAt: calledAt + 1, ids: [...ids] });

  it.each([
    ['nothing', [], []],
    ['the newest append missing', [a, b, c], [read(7, 'ab')]],
    ['all of them', [a, b, c], [read(7, 'ab'), read(9, 'abc')]],
    ['an append without an answer, there or not', [a, { ...b, returnedAt: undefined }, c], [read(7, 'ac')]],
    ['one during an append', [a, { ...b, returnedAt: 20 }], [read(7, 'ab')]],
  ])('accepts %s', (_, appends, reads) => expect(whyNotAppendOnly(appends, reads)).toBeUndefined());

  it.each([
    ['a record twice', [a, b], [read(7, 'aab')], 'twice'],
    ['a record of nobody', [a, b], [read(7, 'abx')], 'nobody appended'],
    ['a record before its append', [a, c], [read(3, 'ac')], 'before it was appended'],
    ['an acknowledged record missing at the end', [a, b, c], [read(7, 'a')], "lacks 'b'"],
    ['a gap', [a, b, c], [read(7, 'ac')], "lacks 'b'"],
    ['another order', [a, b], [read(7, 'ba')], "has 'b' before 'a'"],
    [
      'reads that differ',
      [
        { ...a, returnedAt: undefined },
        { ...b, returnedAt: undefined },
      ],
      [read(7, 'a'), read(9, 'b')],
      'reads differ',
    ],
  ])('refuses %s', (_, appends, reads, problem) => expect(whyNotAppendOnly(appends, reads)).toContain(problem));
});
