/** One node's disk: what an append promises, and what a start of the node finds. */

import { beforeEach, describe, expect, it } from 'vitest';
import { SeededRandom } from '../../../src/core/random.js';
import { until } from '../../../test/support/virtual-time.js';
import { EventQueue } from '../../lab/src/sim/event-queue.js';
import { ExtentStore } from '../src/extent-store.js';
import { BLOCK_BYTES, blockCrcs, encodeRecord, recordBytes } from '../src/record.js';
import { SimDisk } from './sim-disk.js';

const EXTENT = 7;
const SLOTS = 4096;

let events: EventQueue;
let disk: SimDisk;
let store: ExtentStore;

beforeEach(async () => {
  events = new EventQueue();
  disk = new SimDisk(events, new SeededRandom(1).stream('disk'));
  store = await until(
    events,
    ExtentStore.open(disk.open(), async () => ({ node: 1, cluster: 'test' })),
  );
  await until(events, store.create(EXTENT, 1));
});

function record(sequence: number, offset: number, { bytes = 5000, committed = 0 } = {}): Buffer {
  return encodeRecord({ extent: EXTENT, offset, writer: 1, sequence, committed }, Buffer.alloc(bytes, sequence + 1));
}

function append(bytes: Buffer, offset: number, epoch = 1): Promise<void> {
  return store.append(EXTENT, epoch, { offset, record: bytes });
}

/** Appends so many records, each of which says that all before it are committed. */
async function fill(count: number): Promise<number> {
  let offset = 0;
  for (let k = 0; k < count; k++) {
    await until(events, append(record(k, offset, { committed: offset }), offset));
    offset += recordBytes(5000);
  }
  return offset;
}

async function startAgain(): Promise<void> {
  disk.powerLoss();
  store = await until(
    events,
    ExtentStore.open(disk.open(), async () => ({ node: 1, cluster: 'test' })),
  );
}

const contentOf = (extent: number) => disk.files.get(`${extent}.extent`)!;
const code = (remoteCode: string) => expect.objectContaining({ remoteCode });

describe('an append', () => {
  it('is there after a loss of power once it was answered', async () => {
    const end = await fill(3);
    await startAgain();
    expect(store.replica(EXTENT).length).toBe(end);
    expect((await until(events, store.replica(EXTENT).readBlocks(0, 0, 2))).data.equals(Buffer.alloc(5000, 1))).toBe(
      true,
    );
  });

  it('that comes again is recognized, and another one in its place is refused', async () => {
    await fill(2);
    await until(events, append(record(1, recordBytes(5000)), recordBytes(5000)));
    await expect(until(events, append(record(9, 0), 0))).rejects.toEqual(code('CONFLICT'));
  });

  it('that has overtaken others waits for them, until a fence', async () => {
    const bytes = recordBytes(5000);
    const [third, second] = [2, 1].map((k) => append(record(k, k * bytes), k * bytes));
    const last = append(record(4, 4 * bytes), 4 * bytes);
    await expect(append(record(9, 4 * bytes), 4 * bytes)).rejects.toEqual(code('CONFLICT'));
    await until(events, Promise.all([append(record(0, 0), 0), second, third]));
    expect(store.replica(EXTENT).length).toBe(3 * bytes);
    const fence = store.fence(EXTENT, 2);
    await expect(until(events, last)).rejects.toEqual(code('FENCED'));
    expect(await until(events, fence)).toEqual({ length: 3 * bytes, committed: 0, restarts: 0 });
  });

  it('that waits for others is refused when one of them cannot be written', async () => {
    const bytes = recordBytes(5000);
    const last = append(record(2, 2 * bytes), 2 * bytes);
    disk.isSyncFailing = true;
    const ends = Promise.allSettled([append(record(0, 0), 0), last]);
    for (const end of await until(events, ends)) expect(end).toMatchObject({ reason: { remoteCode: 'READ_ONLY' } });
  });

  it('with another epoch, or with a flipped bit is refused', async () => {
    await expect(until(events, append(record(0, 0), 0, 2))).rejects.toEqual(code('FENCED'));
    const bad = record(0, 0);
    bad[2000] ^= 1;
    await expect(until(events, append(bad, 0))).rejects.toEqual(code('DAMAGED'));
  });

  it('is refused after a fence, and the fence outlives a loss of power', async () => {
    const end = await fill(1);
    expect(await until(events, store.fence(EXTENT, 4))).toEqual({ length: end, committed: 0, restarts: 0 });
    await expect(until(events, append(record(1, end), end))).rejects.toEqual(code('FENCED'));
    await startAgain();
    await expect(until(events, store.fence(EXTENT, 3))).rejects.toEqual(code('FENCED'));
  });

  it('whose sync fails is not answered, and nothing is written after it', async () => {
    const end = await fill(1);
    disk.isSyncFailing = true;
    await expect(until(events, append(record(1, end), end))).rejects.toEqual(code('READ_ONLY'));
    disk.isSyncFailing = false;
    await expect(until(events, append(record(1, end), end))).rejects.toEqual(code('READ_ONLY'));
    await expect(until(events, store.create(8, 1))).rejects.toEqual(code('READ_ONLY'));
    expect((await until(events, store.replica(EXTENT).readBlocks(0, 0, 1))).data[0]).toBe(1);
  });

  it('on a full disk makes the node read-only; its replicas can still be sealed', async () => {
    const end = await fill(1);
    disk.capacityBytes = disk.usedBytes;
    await expect(until(events, append(record(1, end), end))).rejects.toEqual(code('READ_ONLY'));
    expect(await until(events, store.seal(EXTENT, 2, end))).toBe(true);
  });
});

describe('a start after a loss of power', () => {
  it('cuts off a torn tail', async () => {
    const end = await fill(2);
    contentOf(EXTENT).durable[SLOTS + recordBytes(5000) + 3000] ^= 1;
    await startAgain();
    expect(store.replica(EXTENT).length).toBe(end / 2);
  });

  it('knows from the last record what all replicas have had', async () => {
    const end = await fill(3);
    const known = { length: end, committed: (end / 3) * 2 };
    expect(await until(events, store.fence(EXTENT, 2))).toEqual({ ...known, restarts: 0 });
    await startAgain();
    expect(await until(events, store.fence(EXTENT, 3))).toEqual({ ...known, restarts: 1 });
  });

  it('keeps what is behind a damaged record that was committed', async () => {
    const end = await fill(3);
    contentOf(EXTENT).durable[SLOTS + 3000] ^= 1;
    await startAgain();
    expect(store.replica(EXTENT).length).toBe(end);
    await expect(until(events, store.replica(EXTENT).readBlocks(0, 0, 1))).rejects.toEqual(code('DAMAGED'));
  });

  it('finds the epoch although one of its slots is damaged', async () => {
    await until(events, store.fence(EXTENT, 5));
    contentOf(EXTENT).durable[20] ^= 1;
    await startAgain();
    expect(store.replica(EXTENT).state.epoch).toBe(5);
  });

  it('takes no more appends to an extent that was open', async () => {
    const end = await fill(1);
    await startAgain();
    await expect(until(events, append(record(1, end), end))).rejects.toEqual(code('SEALED'));
  });
});

describe('a folder of another version', () => {
  /** Writes the marks of the slots anew. */
  function mark(name: string, ...marks: readonly string[]): void {
    const files = new Map([...disk.files].map(([file, { durable }]) => [file, Buffer.from(durable)]));
    for (const [k, text] of marks.entries()) files.get(name)!.write(text, 2048 * k, 'latin1');
    disk.restore(files);
  }

  it.each(['node', `${EXTENT}.extent`])('is refused and left as it is, where %s says so', async (name) => {
    mark(name, 'SvR2', 'SvR2');
    await expect(startAgain()).rejects.toThrow("a file of the folder has the format 'SvR2' of another version");
    expect([...disk.files.keys()].sort()).toEqual([`${EXTENT}.extent`, 'node']);
  });

  it('is none where one slot says so: that is damage, and the other slot holds', async () => {
    const end = await fill(1);
    mark(`${EXTENT}.extent`, 'SvR2');
    await startAgain();
    expect(store.replica(EXTENT).length).toBe(end);
  });

  it('is none where nothing says so: two damaged slots are no replica', async () => {
    mark(`${EXTENT}.extent`, 'Sv\0\0', 'Sv\0\0');
    await startAgain();
    expect(store.reports()).toEqual([]);
  });
});

describe('a deleted extent', () => {
  const release = (nowNs: number, keepNs: number) => until(events, store.releaseDeleted(nowNs, keepNs));
  const names = () => [...disk.files.keys()].filter((name) => name !== 'node');

  it('stays in quarantine for its time, also over a start of the node', async () => {
    const end = await fill(2);
    await until(events, store.remove(EXTENT));
    expect(store.reports()).toEqual([]);
    await startAgain();
    expect(store.reports()).toEqual([]);
    expect(store.quarantine.names).toEqual([`${EXTENT}.extent`]);
    await release(0, 100);
    await until(events, store.quarantine.restore(`${EXTENT}.extent`));
    await startAgain();
    expect(store.replica(EXTENT).length).toBe(end);
    await until(events, store.remove(EXTENT));
    await release(200, 100);
    expect(names()).toEqual([]);
  });

  it('goes sooner where it has more bytes than are free, the oldest first', async () => {
    await fill(2);
    await until(events, store.create(8, 1));
    await until(events, store.remove(EXTENT));
    await until(events, store.remove(8));
    disk.capacityBytes = disk.usedBytes;
    await release(0, 100);
    expect(names()).toEqual(['8.extent.deleted']);
  });

  it('can be made again', async () => {
    await until(events, store.remove(EXTENT));
    await until(events, store.create(EXTENT, 1));
    await until(events, store.remove(EXTENT));
    expect(names()).toEqual([`${EXTENT}.extent.deleted`]);
  });
});

describe('requests for one extent at the same time', () => {
  const OTHER = 8;
  const settled = (requests: ReadonlyArray<Promise<void>>) =>
    until(
      events,
      Promise.all(
        requests.map((request) =>
          request.then(
            () => 'done',
            (error: unknown) => error,
          ),
        ),
      ),
    );

  it.each([
    ['create and create', () => [store.create(OTHER, 1), store.create(OTHER, 1)]],
    ['copy and copy', () => [store.beginCopy(OTHER, 1), store.beginCopy(OTHER, 1)]],
    ['remove, create and create', () => [store.remove(EXTENT), store.create(EXTENT, 1), store.create(EXTENT, 1)]],
  ])('are done one after another: %s', async (_, requests) => {
    const outcomes = await settled(requests());
    expect(outcomes.every((outcome) => outcome === 'done')).toBe(true);
    expect(store.readOnly).toBeUndefined();
  });

  it.each([
    ['create and copy', () => [store.create(OTHER, 1), store.beginCopy(OTHER, 1)], []],
    ['copy and create', () => [store.beginCopy(OTHER, 1), store.create(OTHER, 1)], ['MISSING']],
  ])('have one result each: %s', async (_, requests, refusals) => {
    const outcomes = await settled(requests());
    expect(outcomes.filter((outcome) => outcome !== 'done')).toEqual(refusals.map(code));
    expect(store.readOnly).toBeUndefined();
    expect([...disk.files.keys()].filter((name) => name === `${OTHER}.extent`)).toHaveLength(1);
  });

  it('leave the node writable where a fragment is deleted and written again', async () => {
    const { fragments } = store;
    const id = { extent: OTHER, fragment: 0, making: 1 };
    const data = Buffer.alloc(BLOCK_BYTES);
    const write = () => fragments.write({ ...id, code: 'rs-6-3', length: 6 * BLOCK_BYTES }, 0, data, blockCrcs(data));
    await settled([write(), write()]);
    expect(await settled([fragments.remove(id), write()])).toEqual(['done', 'done']);
    expect(store.readOnly).toBeUndefined();
  });
});
