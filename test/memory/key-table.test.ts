/** Keys and ranges: what an access check lets through, at every edge. */

import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../src/core/random.js';
import { highOfBig, lowOfBig } from '../../src/core/u64.js';
import {
  KeyTable,
  MEMORY_BAD_KEY,
  MEMORY_NO_ACCESS,
  MEMORY_NOT_VALID,
  MEMORY_OK,
  MEMORY_OUT_OF_RANGE,
  MEMORY_WRONG_PD,
} from '../../src/memory/key-table.js';
import type { NicMemoryRegion } from '../../src/memory/keyed-range.js';
import { MemoryRange } from '../../src/memory/memory-range.js';
import { Access } from '../../src/verbs/access.js';

const PD = 1;
const QPN = 0x50;
const U64 = 1n << 64n;

function table() {
  return new KeyTable(new SeededRandom(3).stream('keys'));
}

function register(keys: KeyTable, base: bigint, length: number, access: number = Access.REMOTE_ALL | Access.MW_BIND) {
  return keys.register(PD, new Uint8Array(length), highOfBig(base), lowOfBig(base), access);
}

const range = new MemoryRange();

function access(keys: KeyTable, key: number, va: bigint, length: number, required = 0, pd = PD, qpn = QPN): number {
  return keys.resolve(key, pd, qpn, highOfBig(va), lowOfBig(va), length, required, range);
}

describe('ranges', () => {
  const BASES = [0n, 1n, 0x1000n, 0xffff_ff80n, 0x1_0000_0000n, 0x7f00_0000_0000n, U64 - 256n, (1n << 63n) - 10n];
  const SIZE = 256;

  it.each(BASES)('of a region at %i: everything inside, nothing outside', (base) => {
    const keys = table();
    const { key } = register(keys, base, SIZE);
    const inside: Array<[number, number]> = [
      [0, SIZE],
      [0, 1],
      [SIZE - 1, 1],
      [SIZE - 8, 8],
      [17, 100],
      [SIZE, 0],
      [0, 0],
    ];
    for (const [offset, length] of inside) {
      const va = (base + BigInt(offset)) % U64;
      if (base + BigInt(offset) >= U64) continue; // One past the last address there is: no such address.
      expect(access(keys, key, va, length), `${offset}+${length}`).toBe(MEMORY_OK);
      expect(range.offset).toBe(offset);
    }
    const outside: Array<[number, number]> = [
      [-1, 1],
      [-1, SIZE],
      [-1, SIZE + 2],
      [0, SIZE + 1],
      [1, SIZE],
      [SIZE - 1, 2],
      [SIZE, 1],
      [SIZE + 1, 0],
      [0, 2 ** 31],
      [SIZE - 8, 0xffffffff],
      [-SIZE, SIZE],
    ];
    for (const [offset, length] of outside) {
      const va = (((base + BigInt(offset)) % U64) + U64) % U64;
      expect(access(keys, key, va, length), `${offset}+${length}`).toBe(MEMORY_OUT_OF_RANGE);
    }
  });

  it('bug 08: va + length that wraps round 2^64 is outside', () => {
    // `va + length <= base + size` holds after the wrap: 2^64 - 8 + 16 = 8.
    const keys = table();
    const low = register(keys, 0n, 4096);
    expect(access(keys, low.key, U64 - 8n, 16)).toBe(MEMORY_OUT_OF_RANGE);
    const high = register(keys, U64 - 64n, 64);
    expect(access(keys, high.key, U64 - 8n, 8)).toBe(MEMORY_OK);
    expect(access(keys, high.key, U64 - 8n, 16)).toBe(MEMORY_OUT_OF_RANGE);
    expect(access(keys, high.key, 0n, 1)).toBe(MEMORY_OUT_OF_RANGE);
  });

  it('that differ only beyond 2^53 are told apart', () => {
    const keys = table();
    const { key } = register(keys, 0n, 4096);
    for (const va of [1n << 53n, 1n << 62n, 1n << 63n, (1n << 32n) * 0x200000n]) {
      expect(access(keys, key, va, 1)).toBe(MEMORY_OUT_OF_RANGE);
    }
  });

  it('of a zero-based region are offsets', () => {
    const keys = table();
    const { key } = register(keys, 0x1000n, 64, Access.REMOTE_ALL | Access.ZERO_BASED);
    expect(access(keys, key, 0n, 64)).toBe(MEMORY_OK);
    expect(access(keys, key, 0x1000n, 1)).toBe(MEMORY_OUT_OF_RANGE);
  });

  it('of an empty region hold nothing', () => {
    const keys = table();
    const { key } = register(keys, 0x1000n, 0);
    expect(access(keys, key, 0x1000n, 0)).toBe(MEMORY_OK);
    expect(access(keys, key, 0x1000n, 1)).toBe(MEMORY_OUT_OF_RANGE);
  });
});

describe('keys', () => {
  it('only the whole key opens: every flipped bit is refused', () => {
    const keys = table();
    const { key } = register(keys, 0n, 64);
    for (let bit = 0; bit < 32; bit++) {
      expect(access(keys, (key ^ (1 << bit)) >>> 0, 0n, 1)).toBe(MEMORY_BAD_KEY);
    }
    expect(access(keys, key, 0n, 1)).toBe(MEMORY_OK);
  });

  it('0 is never one', () => {
    const keys = table();
    for (let n = 0; n < 100; n++) expect(register(keys, 0n, 1).key).not.toBe(0);
    expect(access(keys, 0, 0n, 0)).toBe(MEMORY_BAD_KEY);
  });

  it('are unique and not in sequence', () => {
    const keys = table();
    const all = Array.from({ length: 1000 }, () => register(keys, 0n, 1).key);
    expect(new Set(all.map((key) => key >>> 8)).size).toBe(1000);
    const steps = all.slice(1).filter((key, n) => key >>> 8 === (all[n] >>> 8) + 1);
    expect(steps.length).toBeLessThan(5);
  });

  it('of another protection domain do not open', () => {
    const keys = table();
    const { key } = register(keys, 0n, 64);
    expect(access(keys, key, 0n, 1, 0, PD + 1)).toBe(MEMORY_WRONG_PD);
  });

  it('of a deregistered region do not open, and what was resolved before knows', () => {
    const keys = table();
    const region = register(keys, 0n, 64);
    expect(access(keys, region.key, 0n, 1)).toBe(MEMORY_OK);
    expect(range.stillValid).toBe(true);
    keys.deregister(region.handle);
    expect(range.stillValid).toBe(false);
    expect(access(keys, region.key, 0n, 1)).toBe(MEMORY_BAD_KEY);
    expect(() => keys.deregister(region.handle)).toThrow(expect.objectContaining({ code: 'ERR_ROCE_NOT_FOUND' }));
    expect(keys.size).toBe(0);
  });
});

describe('a region that is registered again', () => {
  it('keeps its key, has the new range, domain and access, and ends what was resolved before', () => {
    const keys = table();
    const { key, handle } = register(keys, 0n, 64);
    expect(access(keys, key, 0n, 1)).toBe(MEMORY_OK);
    const next = keys.reregister(handle, (same) => {
      return keys.register(PD + 1, new Uint8Array(8), 0, 0x1000, Access.LOCAL_WRITE, same);
    });
    expect([next.key, next.handle]).toEqual([key, handle]);
    expect(range.stillValid).toBe(false);
    expect(access(keys, key, 0x1000n, 8, Access.LOCAL_WRITE, PD + 1)).toBe(MEMORY_OK);
    expect(access(keys, key, 0x1000n, 8, Access.REMOTE_WRITE, PD + 1)).toBe(MEMORY_NO_ACCESS);
    expect(access(keys, key, 0n, 1, 0, PD + 1)).toBe(MEMORY_OUT_OF_RANGE);
    expect(access(keys, key, 0x1000n, 1)).toBe(MEMORY_WRONG_PD);
  });

  it('is as before if the new access is refused', () => {
    const keys = table();
    const { key, handle } = register(keys, 0n, 64);
    const refused = () => keys.register(PD, new Uint8Array(8), 0, 0, Access.REMOTE_WRITE, key);
    expect(() => keys.reregister(handle, refused)).toThrow(expect.objectContaining({ code: 'ERR_ROCE_CONFLICT' }));
    expect(access(keys, key, 0n, 64)).toBe(MEMORY_OK);
  });
});

describe('access flags', () => {
  const FLAGS = [Access.LOCAL_WRITE, Access.REMOTE_WRITE, Access.REMOTE_READ, Access.REMOTE_ATOMIC];
  const SETS = Array.from({ length: 16 }, (_, n) =>
    FLAGS.reduce((set, flag, i) => (n & (1 << i) ? set | flag : set), 0),
  );

  it('bug 11: all bits asked for must be there, not just one of them', () => {
    const keys = table();
    for (const has of SETS) {
      if (has & (Access.REMOTE_WRITE | Access.REMOTE_ATOMIC) && !(has & Access.LOCAL_WRITE)) continue;
      const { key } = register(keys, 0n, 8, has);
      for (const needs of SETS) {
        const expected = SETS.includes(needs) && (has & needs) === needs ? MEMORY_OK : MEMORY_NO_ACCESS;
        expect(access(keys, key, 0n, 8, needs), `${has} ${needs}`).toBe(expected);
      }
    }
  });

  it('remote write and atomic access need local write at registration', () => {
    const keys = table();
    const refused = expect.objectContaining({ code: 'ERR_ROCE_CONFLICT' });
    expect(() => register(keys, 0n, 8, Access.REMOTE_WRITE)).toThrow(refused);
    expect(() => register(keys, 0n, 8, Access.REMOTE_ATOMIC | Access.REMOTE_READ)).toThrow(refused);
    expect(() => register(keys, 0n, 8, Access.REMOTE_READ)).not.toThrow();
    expect(keys.size).toBe(1);
  });
});

describe('memory windows', () => {
  interface Bind {
    region: NicMemoryRegion;
    key: number;
    base?: bigint;
    length?: number;
    access?: number;
    qpn?: number;
    pd?: number;
    regionKey?: number;
  }

  function bind(keys: KeyTable, window: { handle: number }, request: Bind): boolean {
    const base = request.base ?? 0x1000n;
    return keys.bind({
      window: window.handle,
      regionKey: request.regionKey ?? request.region.key,
      newKey: request.key,
      baseHigh: highOfBig(base),
      baseLow: lowOfBig(base),
      lengthBytes: request.length ?? 16,
      access: request.access ?? Access.REMOTE_READ | Access.REMOTE_WRITE,
      qpn: request.qpn ?? QPN,
      pd: request.pd ?? PD,
    });
  }

  const setUp = (type: 1 | 2, regionAccess?: number) => {
    const keys = table();
    const region = register(keys, 0x1000n, 64, regionAccess);
    const window = keys.allocWindow(PD, type);
    return { keys, region, window };
  };
  const withByte = (key: number, byte: number) => ((key & ~0xff) | byte) >>> 0;

  it('are no use before they are bound', () => {
    const { keys, window } = setUp(1);
    expect(access(keys, window.key, 0x1000n, 1)).toBe(MEMORY_NOT_VALID);
  });

  it.each([1, 2] as const)('type %i: bug 22: every key byte can be bound, and only the newest opens', (type) => {
    // Comparing the whole set of old keys, or only its upper part, would let a stale key in or a good one out.
    const { keys, region, window } = setUp(type);
    let previous = -1;
    for (let byte = 0; byte < 256; byte++) {
      const key = withByte(window.key, byte);
      if (type === 2 && previous >= 0) expect(keys.invalidate(withByte(window.key, previous), PD, QPN)).toBe(true);
      expect(bind(keys, window, { region, key }), `byte ${byte}`).toBe(true);
      expect(access(keys, key, 0x1000n, 16, Access.REMOTE_WRITE)).toBe(MEMORY_OK);
      if (previous >= 0) {
        expect(access(keys, withByte(key, previous), 0x1000n, 1)).toBe(MEMORY_BAD_KEY);
        expect(keys.invalidate(withByte(key, previous), PD, QPN)).toBe(false);
      }
      previous = byte;
    }
    expect(region.boundWindows).toBe(1);
  });

  it('open their own range, with their own rights', () => {
    const { keys, region, window } = setUp(1);
    expect(bind(keys, window, { region, key: window.key, base: 0x1010n, length: 16, access: Access.REMOTE_READ })).toBe(
      true,
    );
    expect(access(keys, window.key, 0x1010n, 16, Access.REMOTE_READ)).toBe(MEMORY_OK);
    expect(range.offset).toBe(16);
    expect(access(keys, window.key, 0x100fn, 1)).toBe(MEMORY_OUT_OF_RANGE);
    expect(access(keys, window.key, 0x1020n, 1)).toBe(MEMORY_OUT_OF_RANGE);
    expect(access(keys, window.key, 0x1010n, 1, Access.REMOTE_WRITE)).toBe(MEMORY_NO_ACCESS);
  });

  it('are never an lkey', () => {
    const { keys, region, window } = setUp(1);
    bind(keys, window, { region, key: window.key });
    expect(access(keys, window.key, 0x1000n, 1, 0, PD, -1)).toBe(MEMORY_BAD_KEY);
  });

  it('type 1 serves every QP of the domain, type 2 the one that bound it', () => {
    for (const type of [1, 2] as const) {
      const { keys, region, window } = setUp(type);
      bind(keys, window, { region, key: window.key });
      expect(access(keys, window.key, 0x1000n, 1, 0, PD, QPN + 1)).toBe(type === 1 ? MEMORY_OK : MEMORY_BAD_KEY);
      expect(access(keys, window.key, 0x1000n, 1, 0, PD + 1)).toBe(MEMORY_WRONG_PD);
    }
  });

  it('type 1 can be bound over and cannot be invalidated; type 2 the other way round', () => {
    const one = setUp(1);
    expect(bind(one.keys, one.window, { region: one.region, key: one.window.key })).toBe(true);
    expect(one.keys.invalidate(one.window.key, PD, QPN)).toBe(false);
    expect(bind(one.keys, one.window, { region: one.region, key: withByte(one.window.key, 9) })).toBe(true);
    const two = setUp(2);
    expect(bind(two.keys, two.window, { region: two.region, key: two.window.key })).toBe(true);
    expect(bind(two.keys, two.window, { region: two.region, key: withByte(two.window.key, 9) })).toBe(false);
    expect(two.keys.invalidate(two.window.key, PD, QPN + 1)).toBe(false);
    expect(two.keys.invalidate(two.window.key, PD, QPN)).toBe(true);
    expect(two.keys.invalidate(two.window.key, PD, QPN)).toBe(false);
    expect(bind(two.keys, two.window, { region: two.region, key: withByte(two.window.key, 9) })).toBe(true);
  });

  it('zero length unbinds', () => {
    const { keys, region, window } = setUp(1);
    bind(keys, window, { region, key: window.key });
    expect(bind(keys, window, { region, key: withByte(window.key, 5), length: 0 })).toBe(true);
    expect(access(keys, withByte(window.key, 5), 0x1000n, 0)).toBe(MEMORY_NOT_VALID);
    expect(region.boundWindows).toBe(0);
  });

  it('zero-based is for type 2: addresses are offsets', () => {
    const flags = Access.REMOTE_READ | Access.ZERO_BASED;
    const two = setUp(2);
    expect(bind(two.keys, two.window, { region: two.region, key: two.window.key, base: 0x1008n, access: flags })).toBe(
      true,
    );
    expect(access(two.keys, two.window.key, 0n, 16)).toBe(MEMORY_OK);
    expect(range.offset).toBe(8);
    expect(access(two.keys, two.window.key, 0x1008n, 1)).toBe(MEMORY_OUT_OF_RANGE);
    const one = setUp(1);
    expect(bind(one.keys, one.window, { region: one.region, key: one.window.key, access: flags })).toBe(false);
  });

  it.each([
    ['a region without MW_BIND', Access.REMOTE_ALL, {}],
    ['a zero-based region', Access.REMOTE_ALL | Access.MW_BIND | Access.ZERO_BASED, { base: 0n }],
    ['remote write without local write of the region', Access.MW_BIND, { access: Access.REMOTE_WRITE }],
    ['remote atomics without local write of the region', Access.MW_BIND, { access: Access.REMOTE_ATOMIC }],
    ['a range that begins before the region', undefined, { base: 0xfffn }],
    ['a range that ends behind the region', undefined, { base: 0x1031n }],
    ['a range that wraps', undefined, { base: U64 - 8n }],
    ['a stale region key', undefined, { regionKey: -1 }],
    ['another protection domain', undefined, { pd: PD + 1 }],
    ['another index in the key', undefined, { key: 0x12345678 }],
  ])('cannot be bound to %s', (_, regionAccess, request) => {
    const { keys, region, window } = setUp(2, regionAccess);
    const stale = 'regionKey' in request ? { regionKey: withByte(region.key, (region.key + 1) & 0xff) } : {};
    expect(bind(keys, window, { region, key: window.key, ...request, ...stale })).toBe(false);
    expect(region.boundWindows).toBe(0);
    expect(access(keys, window.key, 0x1000n, 1)).toBe(MEMORY_NOT_VALID);
  });

  it('keep their region from being deregistered, until they are unbound or freed', () => {
    const { keys, region, window } = setUp(1);
    bind(keys, window, { region, key: window.key });
    expect(() => keys.deregister(region.handle)).toThrow(expect.objectContaining({ code: 'ERR_ROCE_BUSY' }));
    expect(access(keys, region.key, 0x1000n, 1)).toBe(MEMORY_OK);
    keys.freeWindow(window.handle);
    keys.deregister(region.handle);
    expect(keys.size).toBe(0);
  });

  it('of type 2 die with their QP', () => {
    const { keys, region, window } = setUp(2);
    bind(keys, window, { region, key: window.key });
    keys.unbindAllOf(QPN + 1);
    expect(access(keys, window.key, 0x1000n, 1)).toBe(MEMORY_OK);
    keys.unbindAllOf(QPN);
    expect(access(keys, window.key, 0x1000n, 1)).toBe(MEMORY_NOT_VALID);
    expect(region.boundWindows).toBe(0);
  });

  it('that are bound anew are noticed by a message in progress', () => {
    const { keys, region, window } = setUp(1);
    bind(keys, window, { region, key: window.key });
    expect(access(keys, window.key, 0x1000n, 16)).toBe(MEMORY_OK);
    expect(range.stillValid).toBe(true);
    bind(keys, window, { region, key: withByte(window.key, window.key + 1) });
    expect(range.stillValid).toBe(false);
  });

  it.each([1, 2] as const)('type %i: and under the same key, too', (type) => {
    const { keys, region, window } = setUp(type);
    bind(keys, window, { region, key: window.key });
    expect(access(keys, window.key, 0x1000n, 16)).toBe(MEMORY_OK);
    if (type === 2) expect(keys.invalidate(window.key, PD, QPN)).toBe(true);
    expect(bind(keys, window, { region, key: window.key })).toBe(true);
    expect(range.stillValid).toBe(false);
    expect(access(keys, window.key, 0x1000n, 16)).toBe(MEMORY_OK);
    expect(range.stillValid).toBe(true);
  });
});

describe('fast registration', () => {
  const backing = new Uint8Array(4096);
  const flags = Access.REMOTE_ALL | Access.MW_BIND;
  const setUp = () => {
    const keys = table();
    const region = keys.allocFastRegister(PD, backing);
    return { keys, region };
  };
  const next = (key: number) => ((key & ~0xff) | ((key + 1) & 0xff)) >>> 0;

  it('maps a part of the backing; a free region is no use', () => {
    const { keys, region } = setUp();
    expect(access(keys, region.key, 0n, 0)).toBe(MEMORY_NOT_VALID);
    expect(keys.fastRegister(region.handle, PD, next(region.key), 512, 100, 0, 0x8000, flags)).toBe(true);
    expect(access(keys, region.key, 0x8000n, 100)).toBe(MEMORY_OK);
    expect(range.bytes.byteOffset + range.offset).toBe(512);
    expect(access(keys, region.key, 0x8000n, 101)).toBe(MEMORY_OUT_OF_RANGE);
  });

  it('needs a free region; invalidation frees it, and the old key stays dead after reuse', () => {
    const { keys, region } = setUp();
    const first = next(region.key);
    expect(keys.fastRegister(region.handle, PD, first, 0, 100, 0, 0, flags)).toBe(true);
    expect(keys.fastRegister(region.handle, PD, next(first), 0, 100, 0, 0, flags)).toBe(false);
    expect(keys.invalidate(first, PD, QPN)).toBe(true);
    expect(access(keys, first, 0n, 1)).toBe(MEMORY_NOT_VALID);
    expect(keys.invalidate(first, PD, QPN)).toBe(false);
    expect(keys.fastRegister(region.handle, PD, next(first), 0, 100, 0, 0, flags)).toBe(true);
    expect(access(keys, first, 0n, 1)).toBe(MEMORY_BAD_KEY);
    expect(access(keys, next(first), 0n, 1)).toBe(MEMORY_OK);
  });

  it.each([
    ['another index in the key', (key: number) => [PD, key ^ 0x100, 0, 100, flags] as const],
    ['another protection domain', (key: number) => [PD + 1, key, 0, 100, flags] as const],
    ['more than the backing', (key: number) => [PD, key, 4000, 97, flags] as const],
    ['remote write without local write', (key: number) => [PD, key, 0, 100, Access.REMOTE_WRITE] as const],
  ])('refuses %s', (_, make) => {
    const { keys, region } = setUp();
    const [pd, key, offset, length, accessFlags] = make(region.key);
    expect(keys.fastRegister(region.handle, pd, key, offset, length, 0, 0, accessFlags)).toBe(false);
    expect(region.valid).toBe(false);
  });

  it('an ordinary region can be neither registered by work request nor invalidated', () => {
    const keys = table();
    const region = register(keys, 0n, 64);
    expect(keys.fastRegister(region.handle, PD, region.key, 0, 8, 0, 0, flags)).toBe(false);
    expect(keys.invalidate(region.key, PD, QPN)).toBe(false);
    expect(access(keys, region.key, 0n, 1)).toBe(MEMORY_OK);
  });

  it('a region with a bound window cannot be invalidated', () => {
    const { keys, region } = setUp();
    keys.fastRegister(region.handle, PD, region.key, 0, 100, 0, 0, flags);
    const window = keys.allocWindow(PD, 2);
    const request = { baseHigh: 0, baseLow: 0, lengthBytes: 8, access: 0, qpn: QPN, pd: PD };
    expect(keys.bind({ window: window.handle, regionKey: region.key, newKey: window.key, ...request })).toBe(true);
    expect(keys.invalidate(region.key, PD, QPN)).toBe(false);
    expect(keys.invalidate(window.key, PD, QPN)).toBe(true);
    expect(keys.invalidate(region.key, PD, QPN)).toBe(true);
  });

  it('keys of another domain cannot be invalidated', () => {
    const { keys, region } = setUp();
    keys.fastRegister(region.handle, PD, region.key, 0, 100, 0, 0, flags);
    expect(keys.invalidate(region.key, PD + 1, QPN)).toBe(false);
  });
});
