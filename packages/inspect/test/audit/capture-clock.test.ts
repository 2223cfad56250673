import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CaptureClock } from '../../src/audit/capture-clock.js';

const stamp = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const near = fc.tuple(stamp, fc.bigInt({ min: -(2n ** 34n), max: 2n ** 34n }));

const elapsed = (first: bigint, later: bigint) => {
  const clock = new CaptureClock();
  clock.begin(first);
  return clock.sinceBegin(later);
};

it('is the difference of the stamps, as signed 64 bits', () => {
  const check = (first: bigint, later: bigint) => {
    expect(elapsed(first, later)).toBe(Number(BigInt.asIntN(64, later - first)));
  };
  fc.assert(fc.property(stamp, stamp, check));
  fc.assert(fc.property(near, ([first, step]) => check(first, BigInt.asUintN(64, first + step))));
});

it('goes back, and over the border of the halves', () => {
  const border = 1_700_000_000n * 2n ** 32n;
  expect(elapsed(border, border - 1n)).toBe(-1);
  expect(elapsed(border - 1n, border)).toBe(1);
  expect(elapsed(border + 5n, border + 5n)).toBe(0);
});
