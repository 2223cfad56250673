/** READs that meet a change: every byte is where the old memory ends and the new begins, or the reverse. */

import { describe, expect, it } from 'vitest';
import { layoutOf, UNIT_BYTES } from '../src/geometry.js';
import { keyPositionOf } from '../src/key-hash.js';
import { decodeRecord, encodeRecord, recordBytes } from '../src/record.js';
import { type Lookup, type RemoteMemory, RemoteTable } from '../src/remote-table.js';
import { readSlot, unitsOf } from '../src/slot.js';
import type { KvStore } from '../src/store.js';
import { key, memoryOf, setNow, smallStore, TestClock, textOf, value } from './small-store.js';

const NAME = key('it');
const SHORT = 20;
const LONG = 150;

/** Memory before and after one change of the entry. */
interface Change {
  readonly before: Buffer;
  readonly after: Buffer;
}

function changeOf(prepare: (store: KvStore) => void, change: (store: KvStore) => void): Change {
  const { store } = smallStore();
  for (let k = 0; k < 20; k++) store.set(key(k), value(k % 2 === 0 ? SHORT : LONG, k));
  prepare(store);
  const before = Buffer.from(store.region);
  change(store);
  return { before, after: Buffer.from(store.region) };
}

const set = (bytes: number, fill: string) => (store: KvStore) => {
  expect(store.set(NAME, value(bytes, fill)).outcome).toBe('done');
};
const remove = (store: KvStore) => {
  store.delete(NAME);
};

const CHANGES: Record<string, Change> = {
  'a short value replaced by a short one': changeOf(set(SHORT, 'a'), set(SHORT, 'b')),
  'a short value replaced by a shorter one': changeOf(set(SHORT, 'a'), set(SHORT - 9, 'b')),
  'a long value replaced by a long one': changeOf(set(LONG, 'a'), set(LONG, 'b')),
  'a short value replaced by a long one': changeOf(set(SHORT, 'a'), set(LONG, 'b')),
  'a long value replaced by a short one': changeOf(set(LONG, 'a'), set(SHORT, 'b')),
  'a new short value': changeOf(() => {}, set(SHORT, 'b')),
  'a new long value': changeOf(() => {}, set(LONG, 'b')),
  'a short value deleted': changeOf(set(SHORT, 'a'), remove),
  'a long value deleted': changeOf(set(LONG, 'a'), remove),
};

const { geometry } = smallStore();
const table = (memory: RemoteMemory) => new RemoteTable(memory, geometry, new TestClock());
const lookUp = (memory: RemoteMemory) => table(memory).lookUp(NAME);

/** Reads buckets and records that change after `at` bytes of them. */
function torn({ before, after }: Change, at: { readonly buckets: number; readonly record: number }): RemoteMemory {
  const { log } = layoutOf(geometry);
  return {
    read: async (offset, length, use) => {
      const split = offset + Math.min(length, offset < log ? at.buckets : at.record);
      return use(Buffer.concat([before.subarray(offset, split), after.subarray(split, offset + length)]));
    },
  };
}

const shown = (lookup: Lookup) => (lookup === 'unclear' ? lookup : textOf(lookup));
const NEVER = Number.POSITIVE_INFINITY;

describe('a GET that meets', () => {
  const readBytes = 2 * 8 * geometry.slotBytes;

  it.each(Object.entries(CHANGES))('%s', async (_name, change) => {
    const [old, fresh] = [shown(await lookUp(memoryOf(change.before))), shown(await lookUp(memoryOf(change.after)))];
    expect(old).not.toBe(fresh);
    const seen = new Set<string | undefined>();
    for (const way of [change, { before: change.after, after: change.before }]) {
      for (let buckets = 0; buckets <= readBytes; buckets++)
        for (const record of [0, NEVER]) seen.add(shown(await lookUp(torn(way, { buckets, record }))));
      for (let record = 0; record <= recordBytes(NAME.length, LONG); record++)
        for (const buckets of [0, NEVER]) seen.add(shown(await lookUp(torn(way, { buckets, record }))));
    }
    seen.delete('unclear');
    // Nothing but what was there before or after.
    expect([...seen].sort()).toEqual([old, fresh].sort());
  });

  it('memory that was used again sees a change, wherever the READ is cut', async () => {
    const { before } = changeOf(set(LONG, 'a'), () => {});
    const at = before.indexOf(value(LONG, 'a'));
    const start = layoutOf(geometry).log + Math.floor((at - layoutOf(geometry).log) / UNIT_BYTES) * UNIT_BYTES;
    const old = decodeRecord(before.subarray(start))!;
    // A later value of the same key, of the same length, at the same place.
    const after = Buffer.from(before);
    after.set(encodeRecord({ ...old, version: old.version + 1, value: value(LONG, 'z') }), start);
    for (let record = 0; record < recordBytes(NAME.length, LONG); record++) {
      const seen = shown(await lookUp(torn({ before, after }, { buckets: NEVER, record })));
      expect(seen === 'unclear' || (record >= LONG && seen === old.value.toString())).toBe(true);
    }
  });

  it('a record without its check is mixed up: what the checksum and the version are for', async () => {
    const change = CHANGES['a short value replaced by a short one'];
    const seen = new Set<string>();
    for (let buckets = 0; buckets <= readBytes; buckets++)
      seen.add(await trusting(torn(change, { buckets, record: 0 })));
    expect([...seen].some((text) => /ba|ab/.test(text))).toBe(true);
  });
});

/** A reader that takes what the slot holds for the value. */
function trusting(memory: RemoteMemory): Promise<string> {
  const { bucket, fingerprint } = keyPositionOf(NAME, geometry.buckets, geometry.seed);
  const bytesEach = 8 * geometry.slotBytes;
  return memory.read(layoutOf(geometry).table + bucket * bytesEach, 2 * bytesEach, (bytes) => {
    for (let k = 0; k < 16; k++) {
      const at = k * geometry.slotBytes;
      if (readSlot(bytes, at).fingerprint === fingerprint)
        return bytes.toString('latin1', at + 16 + 24 + NAME.length, at + 16 + 24 + NAME.length + SHORT);
    }
    return '';
  });
}

describe('slots that say anything', () => {
  it('never lead a READ outside the log', async () => {
    const { before } = changeOf(set(LONG, 'a'), () => {});
    const { bucket, fingerprint } = keyPositionOf(NAME, geometry.buckets, geometry.seed);
    const { table: start, log, end } = layoutOf(geometry);
    const region = Buffer.from(before);
    for (const [place, units] of [
      [0xffff_fffe, 1],
      [(end - log) / UNIT_BYTES - 1, 2],
      [0, 0],
      [0, 65_535],
    ]) {
      const at = start + bucket * 8 * geometry.slotBytes;
      region.writeUInt16LE(fingerprint, at);
      region.writeUInt16LE(units, at + 2);
      region.writeUInt32LE(place, at + 4);
      const memory: RemoteMemory = {
        read: async (offset, length, use) => {
          expect(offset + length).toBeLessThanOrEqual(end);
          return use(region.subarray(offset, offset + length));
        },
      };
      expect(['unclear', 'a'.repeat(LONG)]).toContain(shown(await lookUp(memory)));
    }
  });
});

describe('a reader that stops between two READs', () => {
  it('for a minute reads nothing freed: it looks again', async () => {
    const { store, clock } = smallStore();
    setNow(store, clock, NAME, value(LONG, 'a'));
    let reads = 0;
    const slow: RemoteMemory = {
      read: async (offset, length, use) => {
        if (++reads === 2) {
          clock.timeNs += 60e9;
          store.delete(NAME);
          for (let k = 0; k < 2000; k++) setNow(store, clock, key(k % 40), value(LONG, k % 256));
        }
        return use(store.region.subarray(offset, offset + length));
      },
    };
    const reader = new RemoteTable(slow, store.geometry, clock);
    expect(await reader.lookUp(NAME)).toBe('unclear');
    expect(await reader.lookUp(NAME)).toBeUndefined();
  });

  it('for longer than the grace period does not trust memory that looks right', async () => {
    const { store, clock } = smallStore();
    setNow(store, clock, NAME, value(LONG, 'a'));
    const pause = async (ms: number) => {
      const slow: RemoteMemory = {
        read: async (offset, length, use) => {
          clock.timeNs += (ms * 1e6) / 2;
          return use(store.region.subarray(offset, offset + length));
        },
      };
      return new RemoteTable(slow, store.geometry, clock).lookUp(NAME);
    };
    expect(await pause(store.geometry.graceMs)).toMatchObject({ key: NAME });
    expect(await pause(store.geometry.graceMs + 1)).toBe('unclear');
  });

  it('for less than the grace period finds the old value whole, whatever was written meanwhile', async () => {
    const { store, clock } = smallStore();
    setNow(store, clock, NAME, value(LONG, 'a'));
    const untilNs = clock.timeNs + store.geometry.graceMs * 1e6;
    let reads = 0;
    const slow: RemoteMemory = {
      read: async (offset, length, use) => {
        if (++reads === 2) {
          store.delete(NAME);
          // As much as can be written before freed memory may be used again.
          for (let k = 0; ; k++) {
            const written = store.set(key(k % 40), value(LONG, 'z'));
            if (written.outcome !== 'wait') continue;
            expect(written.retryNs).toBeGreaterThanOrEqual(untilNs);
            break;
          }
        }
        return use(store.region.subarray(offset, offset + length));
      },
    };
    expect(shown(await new RemoteTable(slow, store.geometry, clock).lookUp(NAME))).toBe('a'.repeat(LONG));
    expect(unitsOf(LONG)).toBe(3);
  });
});
