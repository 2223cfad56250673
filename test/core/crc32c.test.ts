import fc from 'fast-check';
import { expect, test } from 'vitest';
import { crc32c, portableCrc32c } from '../../src/core/crc32c.js';

/** The examples of RFC 3720 appendix B.4. */
const EXAMPLES: ReadonlyArray<readonly [string, Uint8Array, number]> = [
  ['32 zeros', new Uint8Array(32), 0x8a9136aa],
  ['32 ones', new Uint8Array(32).fill(0xff), 0x62a8ab43],
  ['32 incrementing', Uint8Array.from({ length: 32 }, (_, i) => i), 0x46dd794e],
  ['32 decrementing', Uint8Array.from({ length: 32 }, (_, i) => 31 - i), 0x113fdb5c],
];

test.each(EXAMPLES)('the example of RFC 3720: %s', (_, bytes, crc) => {
  expect(crc32c(bytes)).toBe(crc);
  expect(portableCrc32c(bytes)).toBe(crc);
});

test('headers are summed in JavaScript, longer bytes by native code: the sums are the same on both sides of the border', () => {
  const bytes = Uint8Array.from({ length: 130 }, (_, i) => (i * 37) & 0xff);
  for (let length = 0; length <= bytes.length; length++) {
    const part = bytes.subarray(0, length);
    expect(crc32c(part)).toBe(portableCrc32c(part));
    expect(crc32c(bytes.subarray(length), crc32c(part))).toBe(portableCrc32c(bytes));
  }
});

test('both implementations agree, and chain', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.uint8Array({ maxLength: 40 }), (a, b) => {
      const whole = crc32c(new Uint8Array([...a, ...b]));
      expect(portableCrc32c(new Uint8Array([...a, ...b]))).toBe(whole);
      expect(crc32c(b, crc32c(a))).toBe(whole);
      expect(portableCrc32c(b, portableCrc32c(a))).toBe(whole);
    }),
  );
});
