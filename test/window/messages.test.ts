import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { toHex } from '../../src/core/bytes.js';
import { decodeMessage, encodeMessage, MESSAGE_BYTES, MESSAGE_TYPES } from '../../src/window/window-messages.js';

const u32 = fc.integer({ min: 0, max: 0xffffffff });

describe('control messages', () => {
  test('the layout, byte by byte', () => {
    const bytes = encodeMessage({ type: 'POOL', version: 1, id: 2, count: 3, bytes: 4, rkey: 5, address: 6n });
    expect(toHex(bytes)).toBe('0100000000000001000000020000000300000004000000050000000000000006');
  });

  test('what is encoded is decoded', () => {
    const message = fc.record({
      type: fc.constantFrom(...MESSAGE_TYPES),
      version: u32,
      id: u32,
      count: u32,
      bytes: u32,
      rkey: u32,
      address: fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }),
    });
    fc.assert(
      fc.property(message, (m) => {
        expect(decodeMessage(encodeMessage(m))).toEqual(m);
      }),
    );
  });

  test('other lengths, types and reserved bytes are refused; nothing throws', () => {
    const good = encodeMessage({ type: 'GROW' });
    expect(decodeMessage(good.subarray(1))).toBeUndefined();
    expect(decodeMessage(Buffer.concat([good, good]))).toBeUndefined();
    for (const [at, value] of [
      [0, 0],
      [0, MESSAGE_TYPES.length + 1],
      [0, 255],
      [3, 1],
    ]) {
      const bad = Buffer.from(good);
      bad[at] = value;
      expect(decodeMessage(bad)).toBeUndefined();
    }
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2 * MESSAGE_BYTES }), (bytes) => {
        decodeMessage(bytes);
      }),
    );
  });
});
