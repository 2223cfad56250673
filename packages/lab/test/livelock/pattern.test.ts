import { expect, it } from 'vitest';
import { fillPattern, patternMismatch } from '../../../command/src/pattern.js';

function filled(bytes: number, seed: number): Uint8Array {
  const data = new Uint8Array(bytes);
  fillPattern(data, seed);
  return data;
}

it('a pattern is recognised', () => expect(patternMismatch(filled(100_000, 7), 7)).toBe(-1));

it('another seed is not', () => expect(patternMismatch(filled(100_000, 7), 8)).toBe(0));

it('one flipped bit is found where it is', () => {
  const data = filled(100_000, 7);
  data[76_543] ^= 0x10;
  expect(patternMismatch(data, 7)).toBe(76_543);
});

it('packets of any MTU in each other\u2019s place are found', () => {
  for (const mtu of [256, 512, 1024, 2048, 4096]) {
    const data = filled(4 << 20, 7);
    const packet = data.slice(0, mtu);
    for (let offset = mtu; offset < data.length; offset += mtu) {
      if (Buffer.compare(packet, data.subarray(offset, offset + mtu)) === 0) throw new Error(`${mtu} at ${offset}`);
    }
  }
});
