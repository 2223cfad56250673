/** Regions outside this process: the same keys and ranges, and what happens once an access fails. */

import { expect, it } from 'vitest';
import { SeededRandom } from '../../src/core/random.js';
import type { ForeignMemory } from '../../src/memory/foreign-memory.js';
import { KeyTable, MEMORY_NOT_VALID, MEMORY_OK, MEMORY_OUT_OF_RANGE } from '../../src/memory/key-table.js';
import { MemoryRange } from '../../src/memory/memory-range.js';
import { SgeCursor } from '../../src/memory/sge-cursor.js';
import { Access } from '../../src/verbs/access.js';

const PD = 1;
const ADDRESS = 0x7f12_3456_7000;
const HIGH = 0x7f12;
const LOW = 0x3456_7000;

/** 256 bytes at {@link ADDRESS}, of which the first `there` can be accessed. */
class FakeMemory implements ForeignMemory {
  readonly bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
  there = 256;
  /** Of each access: how many bytes of the message it was told to follow. */
  readonly follows: number[] = [];

  read(address: number, length: number, to: Uint8Array, toOffset: number, follows: number): boolean {
    this.follows.push(follows);
    const start = address - ADDRESS;
    if (start + length > this.there) return false;
    to.set(this.bytes.subarray(start, start + length), toOffset);
    return true;
  }

  write(address: number, from: Uint8Array, fromOffset: number, length: number, follows: number): boolean {
    this.follows.push(follows);
    const start = address - ADDRESS;
    if (start + length > this.there) return false;
    this.bytes.set(from.subarray(fromOffset, fromOffset + length), start);
    return true;
  }
}

function registered() {
  const keys = new KeyTable(new SeededRandom(3).stream('keys'));
  const memory = new FakeMemory();
  const place = { memory, address: ADDRESS, lengthBytes: 256 };
  const region = keys.registerForeign(PD, place, HIGH, LOW, Access.REMOTE_ALL | Access.MW_BIND);
  const range = new MemoryRange();
  const resolve = (offset: number, length: number, key = region.key) =>
    keys.resolve(key, PD, 1, HIGH, LOW + offset, length, 0, range);
  return { keys, memory, region, range, resolve };
}

it('reads and writes at the address, inside the region alone', () => {
  const { memory, range, resolve } = registered();
  expect(resolve(250, 7)).toBe(MEMORY_OUT_OF_RANGE);
  expect(resolve(100, 20)).toBe(MEMORY_OK);
  const to = new Uint8Array(8);
  range.copyTo(5, 3, to, 1);
  expect([...to]).toEqual([0, 105, 106, 107, 0, 0, 0, 0]);
  range.place(2, Uint8Array.of(9, 8, 7), 1, 2);
  expect([...memory.bytes.subarray(101, 105)]).toEqual([101, 8, 7, 104]);
  expect(range.stillValid).toBe(true);
});

it('a failed read gives zeros, and the region and its windows are invalid from then on', () => {
  const { keys, memory, region, range, resolve } = registered();
  const window = keys.allocWindow(PD, 1);
  const bound = { window: window.handle, regionKey: region.key, newKey: window.key, baseHigh: HIGH, baseLow: LOW };
  expect(keys.bind({ ...bound, lengthBytes: 64, access: Access.REMOTE_READ, qpn: 1, pd: PD })).toBe(true);
  expect(resolve(0, 64, window.key)).toBe(MEMORY_OK);
  const other = new MemoryRange();
  other.copyFrom(range);
  memory.there = 32;
  const to = new Uint8Array(64).fill(1);
  range.copyTo(0, 64, to, 0);
  expect(to.every((byte) => byte === 0)).toBe(true);
  expect([range.stillValid, other.stillValid]).toEqual([false, false]);
  expect([resolve(0, 8), resolve(0, 8, window.key)]).toEqual([MEMORY_NOT_VALID, MEMORY_NOT_VALID]);
});

it('a failed write makes it invalid, also when the memory comes back', () => {
  const { memory, range, resolve } = registered();
  expect(resolve(0, 64)).toBe(MEMORY_OK);
  memory.there = 32;
  range.place(0, new Uint8Array(64), 0, 64);
  memory.there = 256;
  range.place(0, new Uint8Array(64), 0, 64);
  expect(range.stillValid).toBe(false);
  expect(memory.bytes[5]).toBe(5);
});

it('accesses name the bytes of the message that follow', () => {
  const { memory, range, resolve } = registered();
  expect(resolve(0, 100)).toBe(MEMORY_OK);
  range.copyTo(0, 60, new Uint8Array(60), 0);
  range.copyTo(60, 40, new Uint8Array(40), 0);
  range.place(0, new Uint8Array(60), 0, 60);
  expect(memory.follows.splice(0)).toEqual([40, 0, 40]);
});

it('a received message may end before its buffers', () => {
  const { keys, memory, region } = registered();
  const words = (value: number) => Uint32Array.of(value);
  const list = { high: words(HIGH), low: words(LOW), lengths: words(100), lkeys: words(region.key) };
  const cursor = new SgeCursor();
  expect(cursor.load({ count: 1, totalBytes: 100, ...list }, keys, PD, 0)).toBe(true);
  cursor.scatter(0, 60, new Uint8Array(60), 0);
  cursor.gather(0, 60, new Uint8Array(60), 0);
  expect(memory.follows).toEqual([0, 40]);
});
