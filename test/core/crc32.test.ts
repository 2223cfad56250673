import fc from 'fast-check';
import { expect, test } from 'vitest';
import { crc32, crc32At, crc32Backend, crc32PacketSigned, crc32Range, crc32RangeSigned } from '../../src/core/crc32.js';
import { naiveCrc32 as reference } from '../support/naive-codec.js';

test('both implementations give the check value of CRC-32/ISO-HDLC', () => {
  const digits = new TextEncoder().encode('123456789');
  expect(crc32(digits)).toBe(0xcbf43926);
  expect(crc32Range(digits, 0, 9, 0)).toBe(0xcbf43926);
});

test('both agree with an independent implementation, for any range', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.nat(20), fc.nat(20), (bytes, before, after) => {
      const offset = Math.min(before, bytes.length);
      const end = Math.max(offset, bytes.length - after);
      const range = bytes.subarray(offset, end);
      expect(crc32(range)).toBe(reference(range));
      expect(crc32Range(bytes, offset, end - offset, 0)).toBe(reference(range));
    }),
  );
});

test('values chain', () => {
  fc.assert(
    fc.property(fc.uint8Array(), fc.uint8Array(), (a, b) => {
      const whole = reference(new Uint8Array([...a, ...b]));
      expect(crc32(b, crc32(a))).toBe(whole);
      expect(crc32Range(b, 0, b.length, crc32Range(a, 0, a.length, 0))).toBe(whole);
    }),
  );
});

test('values chain with a sign, too, as V8 keeps 32 bits without allocating', () => {
  fc.assert(
    fc.property(fc.uint8Array(), fc.uint8Array({ minLength: 1 }), (a, b) => {
      const whole = reference(new Uint8Array([...a, ...b]));
      const first = crc32RangeSigned(a, 0, a.length, 0);
      expect(first).toBe(reference(a) | 0);
      expect(crc32RangeSigned(b, 0, b.length, first)).toBe(whole | 0);
      expect(crc32(b, first)).toBe(whole);
      expect(crc32At(b, 0, b.length, first) >>> 0).toBe(whole);
    }),
  );
});

test('packets in a slab give the same sum by words as by bytes, wherever they begin and end', () => {
  const slab = Uint8Array.from({ length: 10_000 }, (_, i) => (i * 37 + (i >> 8)) & 0xff);
  const shifted = slab.subarray(1); // Its words would begin elsewhere: it has none.
  fc.assert(
    fc.property(fc.nat(9000), fc.nat(200), fc.uint8Array(), fc.boolean(), (from, bytes, before, isWhole) => {
      const [offset, length] = isWhole ? [from & ~3, bytes & ~3] : [from, bytes];
      for (const array of [slab, shifted, slab.slice(0, offset + length)]) {
        const whole = reference(new Uint8Array([...before, ...array.subarray(offset, offset + length)]));
        expect(crc32PacketSigned(array, offset, length, reference(before) | 0)).toBe(whole | 0);
      }
    }),
  );
  slab[4000] ^= 1; // What is summed is the slab as it is now.
  expect(crc32PacketSigned(slab, 4000, 92, 0)).toBe(reference(slab.subarray(4000, 4092)) | 0);
});

test('the backend is one of the two', () => {
  expect(['@node-rs/crc32', 'zlib']).toContain(crc32Backend());
});
