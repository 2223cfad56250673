import { expect, test } from 'vitest';
import { copyToSlot } from '../../src/core/bytes.js';

test.each([
  ['all of a memory', 100, 0, 100, 100],
  ['most of a memory', 100, 0, 90, 100],
  ['little of a memory', 100, 0, 10, 100],
  ['a piece from the middle', 100, 7, 80, 100],
  ['the start of a memory larger than the slot', 9000, 0, 4200, 4256],
  ['a piece of a memory larger than the slot', 9000, 30, 4200, 4256],
])('copyToSlot copies %s to the start of a slot', (_what, fromBytes, offset, length, slotBytes) => {
  const from = Uint8Array.from({ length: fromBytes }, (_, i) => (i * 7) & 0xff);
  const slot = new Uint8Array(slotBytes);
  copyToSlot(from, offset, slot, length);
  expect(slot.subarray(0, length)).toEqual(from.subarray(offset, offset + length));
});
