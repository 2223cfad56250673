import { describe, expect, it, test } from 'vitest';
import { copyToSlot, copyWords, wordsToCopy } from '../../src/core/bytes.js';
import { ViewCache } from '../../src/core/view-cache.js';
import { NicMemoryRegion } from '../../src/memory/keyed-range.js';
import { MemoryRange } from '../../src/memory/memory-range.js';

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

describe('a copy of words', () => {
  const from = Uint8Array.from({ length: 160 }, (_, i) => (i * 7 + 1) & 0xff);
  const wordsOf = (bytes: Uint8Array) => new ViewCache(bytes).words;

  it('is the same as one of bytes where there are whole words, and not possible elsewhere', () => {
    for (let length = 0; length <= 64; length++) {
      for (let fromOffset = 8; fromOffset < 12; fromOffset++) {
        for (let toOffset = 4; toOffset < 8; toOffset++) {
          const target = new Uint8Array(80);
          const right = new Uint8Array(80);
          const isWhole = length % 4 === 0 && fromOffset % 4 === 0 && toOffset % 4 === 0;
          if (isWhole) right.set(from.subarray(fromOffset, fromOffset + length), toOffset);
          expect(copyWords(wordsOf(from), fromOffset, wordsOf(target), toOffset, length)).toBe(isWhole);
          expect(target).toEqual(right);
        }
      }
    }
  });

  it('needs arrays that begin with a word, and ends with the last whole one', () => {
    expect([wordsOf(from.subarray(1)), wordsOf(from.subarray(4, 11))].map(({ length }) => length)).toEqual([0, 1]);
    expect(copyWords(wordsOf(from.subarray(1)), 0, wordsOf(new Uint8Array(8)), 0, 4)).toBe(false);
    expect(copyWords(wordsOf(from), 0, wordsOf(new Uint8Array(9).subarray(1)), 0, 4)).toBe(false);
  });

  it('is not possible from memory that was given away', () => {
    const gone = new Uint8Array(64).fill(5);
    const words = wordsOf(gone);
    expect(copyWords(words, 0, wordsOf(new Uint8Array(64)), 0, 64)).toBe(true);
    structuredClone(gone.buffer, { transfer: [gone.buffer] });
    expect(copyWords(words, 0, wordsOf(new Uint8Array(64)), 0, 64)).toBe(false);
  });

  it('remembers no words of short arrays, which are datagrams that are seen once', () => {
    expect(wordsToCopy(new Uint8Array(8192))).toHaveLength(0);
    const slab = new Uint8Array(8196);
    expect(wordsToCopy(slab)).toHaveLength(2049);
    expect(wordsToCopy(slab)).toBe(wordsToCopy(slab));
  });

  it('or of bytes, in and out of registered memory: all lengths and places, regions that begin anywhere in a word', () => {
    const slab = Uint8Array.from({ length: 9000 }, (_, i) => (i * 13 + 5) & 0xff);
    for (const begin of [0, 1, 4]) {
      for (let length = 0; length <= 70; length++) {
        for (const place of [0, 3, 4]) {
          const bytes = new Uint8Array(new ArrayBuffer(160), begin, 150);
          const range = new MemoryRange();
          range.set(new NicMemoryRegion(1, 1, 256, bytes, false), bytes, 8, new ViewCache(bytes));
          range.place(place, slab, 100, length);
          const out = new Uint8Array(9000);
          range.copyTo(place, length, out, 200 + place);
          const sent = slab.subarray(100, 100 + length);
          expect(bytes.subarray(8 + place, 8 + place + length)).toEqual(sent);
          expect(out.subarray(200 + place, 200 + place + length)).toEqual(sent);
          expect(bytes.filter((byte) => byte !== 0).length).toBe(sent.filter((byte) => byte !== 0).length);
        }
      }
    }
  });
});
