import { describe, expect, it } from 'vitest';
import { HEADER_BYTES, layoutOf, readHeader, writeHeader } from '../src/geometry.js';
import { geometryFor } from '../src/geometry-for.js';
import { keyPositionOf, murmur3 } from '../src/key-hash.js';
import { decodeRecord, encodeRecord } from '../src/record.js';
import { readSlot, writeSlot } from '../src/slot.js';
import { SMALL } from './small-store.js';

describe('the header', () => {
  const geometry = geometryFor(SMALL, 7);
  const { end } = layoutOf(geometry);
  const header = () => {
    const bytes = Buffer.alloc(HEADER_BYTES);
    writeHeader(bytes, geometry);
    return bytes;
  };

  it('comes back as it was written', () => {
    expect(readHeader(header(), end)).toEqual(geometry);
  });

  it('is refused if it is foreign, older or damaged, or does not fit the region', () => {
    const changed = (change: (bytes: Buffer) => void) => {
      const bytes = header();
      change(bytes);
      return () => readHeader(bytes, end);
    };
    expect(changed((bytes) => bytes.fill(0))).toThrow('is not a store');
    expect(changed((bytes) => bytes.writeUInt32LE(0, 8))).toThrow('layout 0');
    expect(changed((bytes) => bytes.writeUInt32LE(2, 8))).toThrow('layout 2');
    for (let at = 12; at < 68; at++) expect(changed((bytes) => bytes.writeUInt8(bytes[at] ^ 1, at))).toThrow('damaged');
    expect(() => readHeader(header(), end - 64)).toThrow('does not describe');
    expect(() => readHeader(header().subarray(0, 100), end)).toThrow('is not a store');
  });
});

describe('sizes', () => {
  it('that cannot be are refused with what can', () => {
    expect(() => geometryFor({ bytes: 1 << 20 }, 1)).toThrow(/too little for values of 65536 bytes.*at least \d+/);
    expect(() => geometryFor({ inlineBytes: 465 }, 1)).toThrow('inlineBytes');
    expect(() => geometryFor({ entries: 0 }, 1)).toThrow('entries');
    expect(() => geometryFor({ graceMs: 0 }, 1)).toThrow('graceMs');
  });

  it.each([[{}], [{ inlineBytes: 0 }], [{ bytes: 2 ** 30, valueBytesMax: 1 << 20 }], [SMALL]])(
    'of %j make a region whose parts stand at multiples of 64 or 8',
    (sizes) => {
      const geometry = geometryFor(sizes, 1);
      expect(layoutOf(geometry).log % 64).toBe(0);
      expect(geometry.segmentBytes % 64).toBe(0);
      expect(geometry.slotBytes % 8).toBe(0);
      expect(geometry.segments).toBeGreaterThanOrEqual(8);
    },
  );
});

describe('records and slots', () => {
  const record = {
    version: 2 ** 52 + 5,
    expiresMs: 2 ** 40,
    key: Buffer.from('name'),
    value: Buffer.from('the value'),
  };

  it('come back as they were written', () => {
    expect(decodeRecord(Buffer.concat([encodeRecord(record), Buffer.alloc(30, 1)]))).toEqual(record);
    const slot = { fingerprint: 65_535, units: 3, place: 4_000_000_000, version: 2 ** 52 + 5 };
    const bytes = Buffer.alloc(32);
    writeSlot(bytes, 8, slot);
    expect(readSlot(bytes, 8)).toEqual(slot);
  });

  it('are no records with any bit flipped, or cut anywhere', () => {
    const bytes = encodeRecord(record);
    for (let bit = 0; bit < 8 * bytes.length; bit++) {
      const damaged = Buffer.from(bytes);
      damaged[bit >> 3] ^= 1 << (bit & 7);
      expect(decodeRecord(damaged)).toBeUndefined();
    }
    for (let length = 0; length < bytes.length; length++)
      expect(decodeRecord(bytes.subarray(0, length))).toBeUndefined();
  });
});

describe('the hash of keys', () => {
  // Known answers of MurmurHash3_x86_32.
  it.each([
    ['', 0, 0],
    ['', 1, 0x514e28b7],
    ['test', 0, 0xba6bd213],
    ['Hello, world!', 0, 0xc0363e43],
    ['The quick brown fox jumps over the lazy dog', 0, 0x2e4ff723],
  ])('of %j with seed %i', (text, seed, hash) => {
    expect(murmur3(Buffer.from(text), seed)).toBe(hash);
  });

  it('spreads keys over all buckets and fingerprints', () => {
    const counts = new Array<number>(64).fill(0);
    const fingerprints = new Set<number>();
    for (let k = 0; k < 6400; k++) {
      const { bucket, fingerprint } = keyPositionOf(Buffer.from(`user:${k}`), 64, 12345);
      counts[bucket]++;
      fingerprints.add(fingerprint);
    }
    expect(Math.max(...counts)).toBeLessThan(150);
    expect(Math.min(...counts)).toBeGreaterThan(50);
    expect(fingerprints.size).toBeGreaterThan(5900);
    expect(fingerprints.has(0)).toBe(false);
  });
});
