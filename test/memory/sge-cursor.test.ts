import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../src/core/random.js';
import { KeyTable } from '../../src/memory/key-table.js';
import { SGE_BYTES, SgeList } from '../../src/memory/ring/work-queue.js';
import { SgeCursor } from '../../src/memory/sge-cursor.js';
import { Access } from '../../src/verbs/access.js';

const PD = 1;

/** A list over one region: [offset, length] pairs. */
function setUp(parts: ReadonlyArray<readonly [offset: number, length: number]>) {
  const keys = new KeyTable(new SeededRandom(1).stream('keys'));
  const bytes = Uint8Array.from({ length: 1000 }, (_, i) => (i * 31 + 7) & 255);
  const region = keys.register(PD, bytes, 0, 0x1000, Access.LOCAL_WRITE);
  const list = new SgeList();
  const wqe = new DataView(new ArrayBuffer(parts.length * SGE_BYTES));
  parts.forEach(([offset, length], i) => {
    wqe.setUint32(i * SGE_BYTES, 0x1000 + offset, true);
    wqe.setUint32(i * SGE_BYTES + 8, length, true);
    wqe.setUint32(i * SGE_BYTES + 12, region.key, true);
  });
  list.read(wqe, 0, parts.length);
  const cursor = new SgeCursor();
  const message = parts.flatMap(([offset, length]) => [...bytes.subarray(offset, offset + length)]);
  return { keys, bytes, region, list, cursor, message };
}

const PARTS = [
  [100, 7],
  [0, 0],
  [500, 1],
  [10, 64],
  [0, 0],
  [900, 100],
] as const;

describe('a scatter/gather list', () => {
  it('gathers every part of the message', () => {
    const { keys, list, cursor, message } = setUp(PARTS);
    expect(cursor.load(list, keys, PD, 0)).toBe(true);
    expect(cursor.totalBytes).toBe(message.length);
    for (let offset = 0; offset <= message.length; offset++) {
      for (const length of [0, 1, 7, 8, 64, message.length - offset]) {
        if (offset + length > message.length) continue;
        const to = new Uint8Array(length + 2).fill(0xaa);
        cursor.gather(offset, length, to, 1);
        expect([...to]).toEqual([0xaa, ...message.slice(offset, offset + length), 0xaa]);
      }
    }
  });

  it('scatters what it gathers, and touches nothing else', () => {
    const { keys, bytes, list, cursor, message } = setUp(PARTS);
    cursor.load(list, keys, PD, Access.LOCAL_WRITE);
    const before = bytes.slice();
    for (let offset = 0; offset < message.length; offset += 5) {
      const length = Math.min(13, message.length - offset);
      cursor.scatter(
        offset,
        length,
        Uint8Array.from(message.slice(offset, offset + length), (v) => v ^ 0xff),
        0,
      );
    }
    const inside = new Set(PARTS.flatMap(([offset, length]) => Array.from({ length }, (_, k) => offset + k)));
    bytes.forEach((value, at) => {
      expect(value, `byte ${at}`).toBe(inside.has(at) ? before[at] ^ 0xff : before[at]);
    });
  });

  it('is refused as a whole when one element is bad', () => {
    const { keys, list, cursor } = setUp(PARTS);
    list.lkeys[3] ^= 1;
    expect(cursor.load(list, keys, PD, 0)).toBe(false);
  });

  it('does not look at the key of an empty element', () => {
    const { keys, list, cursor } = setUp(PARTS);
    list.lkeys[1] = 0;
    expect(cursor.load(list, keys, PD, 0)).toBe(true);
  });

  it('is refused for writing where writing is not allowed', () => {
    const { keys, list, cursor } = setUp(PARTS);
    const readOnly = keys.register(PD, new Uint8Array(1000), 0, 0x1000, 0);
    list.lkeys.fill(readOnly.key);
    expect(cursor.load(list, keys, PD, 0)).toBe(true);
    expect(cursor.load(list, keys, PD, Access.LOCAL_WRITE)).toBe(false);
  });

  it('knows when one of its regions goes away', () => {
    const { keys, list, cursor, region } = setUp(PARTS);
    cursor.load(list, keys, PD, 0);
    expect(cursor.stillValid).toBe(true);
    keys.deregister(region.handle);
    expect(cursor.stillValid).toBe(false);
  });

  it('serves plain bytes without a key, after a list too', () => {
    const { keys, list, cursor, region } = setUp(PARTS);
    cursor.load(list, keys, PD, 0);
    cursor.loadPlain(Uint8Array.of(1, 2, 3, 4, 5), 1, 3);
    keys.deregister(region.handle);
    expect(cursor.stillValid).toBe(true);
    const to = new Uint8Array(3);
    cursor.gather(0, 3, to, 0);
    expect([...to]).toEqual([2, 3, 4]);
  });
});
