import fc from 'fast-check';
import { expect, test } from 'vitest';
import { psnAdd, psnDiff, psnInRange } from '../../src/packet/psn.js';

const MODULUS = 1n << 24n;
const psn = fc.integer({ min: 0, max: 0xffffff });

/** Least non-negative residue modulo 2^24. */
function wrap(value: bigint): bigint {
  return ((value % MODULUS) + MODULUS) % MODULUS;
}

test('psnAdd is addition modulo 2^24', () => {
  fc.assert(
    fc.property(psn, fc.integer({ min: -0xffffff, max: 0xffffff }), (a, count) => {
      expect(BigInt(psnAdd(a, count))).toBe(wrap(BigInt(a) + BigInt(count)));
    }),
  );
});

test('psnDiff is the signed distance in [-2^23, 2^23)', () => {
  fc.assert(
    fc.property(psn, psn, (a, b) => {
      const distance = wrap(BigInt(a) - BigInt(b));
      expect(BigInt(psnDiff(a, b))).toBe(distance >= MODULUS / 2n ? distance - MODULUS : distance);
      expect(psnAdd(b, psnDiff(a, b))).toBe(a);
    }),
  );
  expect(psnDiff(0x800000, 0)).toBe(-0x800000);
  expect(psnDiff(0x7fffff, 0)).toBe(0x7fffff);
});

test('psnInRange includes both ends and nothing else', () => {
  fc.assert(
    fc.property(psn, psn, fc.integer({ min: 0, max: 0x7fffff }), (a, first, span) => {
      const expected = wrap(BigInt(a) - BigInt(first)) <= BigInt(span);
      expect(psnInRange(a, first, psnAdd(first, span))).toBe(expected);
    }),
  );
});

test('order holds for every pair around the wrap', () => {
  const around = Array.from({ length: 32 }, (_, i) => (0xfffff0 + i) & 0xffffff);
  around.forEach((a, i) => {
    around.forEach((b, j) => {
      expect(psnDiff(a, b)).toBe(i - j);
      expect(psnAdd(a, j - i)).toBe(b);
      around.forEach((c, k) => {
        if (j <= k) expect(psnInRange(a, b, c)).toBe(j <= i && i <= k);
      });
    });
  });
});
