/** Pairs of values: all of them occur, in few combinations, and always the same. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pairwise } from '../../src/conform/pairwise.js';

describe('pairwise', () => {
  it('has every pair of values, whatever the parameters', () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 2, maxLength: 6 });
    fc.assert(
      fc.property(sizes, (counts) => {
        const parameters = Object.fromEntries(counts.map((count, i) => [`p${i}`, [...Array(count).keys()]]));
        const rows = pairwise(parameters);
        for (const [first, values] of Object.entries(parameters)) {
          for (const [second, others] of Object.entries(parameters)) {
            if (first >= second) continue;
            for (const value of values) {
              for (const other of others) {
                expect(rows.some((row) => row[first] === value && row[second] === other)).toBe(true);
              }
            }
          }
        }
      }),
    );
  });

  it('needs few: 13 parameters of three values take 30 combinations of 1,594,323', () => {
    const rows = pairwise(Object.fromEntries([...Array(13).keys()].map((i) => [`p${i}`, ['a', 'b', 'c']])));
    expect(rows).toHaveLength(30);
  });

  it('finds the same ones each time', () => {
    const parameters = { mtu: [256, 1024, 4096], family: [4, 6], start: ['anywhere', 'wrap'] };
    expect(pairwise(parameters)).toEqual(pairwise(parameters));
  });
});
