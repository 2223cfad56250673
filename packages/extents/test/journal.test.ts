/** A node with a journal: what is promised while records are in the journal alone, and which journals are refused. */

import { beforeEach, describe, expect, it } from 'vitest';
import { type RandomSource, SeededRandom } from '../../../src/core/random.js';
import { pass, until } from '../../../test/support/virtual-time.js';
import { EventQueue } from '../../lab/src/sim/event-queue.js';
import { virtualClock } from '../../lab/src/sim/virtual-clock.js';
import { DurableValue } from '../src/durable-value.js';
import type { ExtentFile } from '../src/extent-files.js';
import { ExtentStore } from '../src/extent-store.js';
import { Journal } from '../src/journal.js';
import { encodeRecord, recordBytes } from '../src/record.js';
import { emptyJournal } from './cluster.js';
import { SimDisk } from './sim-disk.js';

const EXTENT = 7;
const SLOTS = 4096;
const RING = 128 << 10;
const CHECKPOINT_MS = 50;
const BYTES = recordBytes(5000);

/** More than the events of a start. */
const START_STEPS = 25;

let events: EventQueue;
let disk: SimDisk;
let device: SimDisk;
let store: ExtentStore;
let random: RandomSource;
/** What the journal was asked to do. */
let calls: string[];

beforeEach(async () => {
  events = new EventQueue();
  const seeds = new SeededRandom(1);
  random = seeds.stream('marks');
  disk = new SimDisk(events, seeds.stream('disk'));
  device = new SimDisk(events, seeds.stream('journal'));
  emptyJournal(device, SLOTS + RING);
  await start();
  await until(events, store.create(EXTENT, 1));
});

async function counted(): Promise<ExtentFile> {
  const { write, sync, ...rest } = await device.open().open('journal');
  calls = [];
  const told = <A extends unknown[]>(name: string, call: (...args: A) => Promise<void>) => {
    return (...args: A) => {
      calls.push(name);
      return call(...args);
    };
  };
  return { ...rest, write: told('write', write), sync: told('sync', sync) };
}

async function opened({ node = 1, hasJournal = true } = {}): Promise<ExtentStore> {
  const introduce = async () => ({ node, cluster: 'test' });
  const journal = { file: await counted(), clock: virtualClock(events), random, checkpointMs: CHECKPOINT_MS };
  return ExtentStore.open(disk.open(), introduce, hasJournal ? journal : undefined);
}

async function start(more = {}): Promise<void> {
  store = await until(events, opened(more));
}

/** Everything that was not synced in files of extents is gone, so that the journal alone has it. */
function loseFiles(): void {
  for (const content of disk.files.values()) content.changes = [];
  for (const one of [disk, device]) one.powerLoss();
}

function append(sequence: number, { extent = EXTENT, offset = sequence * BYTES, writer = 1 } = {}): Promise<void> {
  const head = { extent, offset, writer, sequence, committed: offset };
  return store.append(extent, 1, { offset, record: encodeRecord(head, Buffer.alloc(5000, sequence + 1)) });
}

/**
 * A folder with an empty journal. `begin` starts it: to the end, or to a point at which the power fails, or at `sync` the
 * process is killed.
 */
function newFolder() {
  emptyJournal(device, SLOTS + RING);
  const never = new Promise<never>(() => {});
  const folder: { used?: string | undefined; next?: string | undefined } = {};
  let life = 0;
  const begin = async (last?: 'prepare' | 'sync' | 'settle') => {
    const owner = { cluster: 'test', node: 1, life: ++life, used: folder.used, next: folder.next };
    const { sync, ...rest } = await until(events, counted());
    const isLast = () => last === 'sync' && folder.next !== undefined;
    const file = { ...rest, sync: () => (isLast() ? never : sync()) };
    const journal = await until(events, Journal.open({ file, clock: virtualClock(events), random }, owner));
    const begun = journal.begin(disk.open(), {
      prepare: async (next) => {
        folder.next = next;
        if (last === 'prepare') await never;
      },
      settle: async (used) => {
        // The mark before this start's is settled first.
        if (last === 'settle' && used === folder.next && calls.length > 0) await never;
        folder.used = used;
        folder.next = undefined;
      },
    });
    if (last === undefined) return until(events, begun);
    await run(START_STEPS);
    if (last !== 'sync') return loseUnsynced();
    for (const one of [disk, device]) one.kill();
  };
  return { folder, begin };
}

/** The power fails, and nothing that was not synced is kept. */
function loseUnsynced(): void {
  for (const one of [disk, device]) {
    for (const content of one.files.values()) content.changes = [];
    one.powerLoss();
  }
}

/** So many events, each with all that follows from it. */
async function run(steps: number): Promise<void> {
  for (let k = 0; k < steps; k++) {
    events.step();
    await new Promise(setImmediate);
  }
}

async function fill(count: number): Promise<void> {
  for (let k = 0; k < count; k++) await until(events, append(k));
}

const first = async (offset: number) => (await until(events, store.replica(EXTENT).readBlocks(offset, 0, 1))).data[0];
const code = (remoteCode: string) => expect.objectContaining({ remoteCode });

describe('an append through a journal', () => {
  it('is one write and one sync with those to other extents', async () => {
    const extents = [11, 12, 13, 14, 15];
    for (const extent of extents) await until(events, store.create(extent, 1));
    calls.length = 0;
    await until(events, Promise.all(extents.map((extent) => append(0, { extent }))));
    expect(calls.length).toBeLessThanOrEqual(4); // The first one has a sync of its own; the others wait for it, and share the next.
    expect(calls.filter((call) => call === 'sync')).toHaveLength(calls.length / 2);
  });

  it('is there after a loss of power, although its file was not synced', async () => {
    await fill(3);
    loseFiles();
    expect(disk.files.get(`${EXTENT}.extent`)!.durable).toHaveLength(0);
    await start();
    expect(store.replica(EXTENT).length).toBe(3 * BYTES);
    expect(await first(2 * BYTES)).toBe(3);
  });

  it('is not there without its frame in the journal', async () => {
    await fill(3);
    loseFiles();
    const frame = device.files.get('journal')!.durable.indexOf(Buffer.alloc(512, 3));
    device.damage('journal', frame);
    await start();
    expect(store.replica(EXTENT).length).toBe(2 * BYTES);
  });

  it('is there where an older frame rots', async () => {
    await fill(3);
    loseFiles();
    device.damage('journal', device.files.get('journal')!.durable.indexOf(Buffer.alloc(512, 1)));
    await start();
    expect(store.replica(EXTENT).length).toBe(3 * BYTES); // The last record says that the first was on all replicas.
    await expect(first(0)).rejects.toEqual(code('DAMAGED'));
    expect(await first(2 * BYTES)).toBe(3);
  });

  it('that comes again is recognized, and another one in its place is refused', async () => {
    await fill(2);
    await until(events, append(1));
    await expect(until(events, append(9, { offset: BYTES }))).rejects.toEqual(code('CONFLICT'));
  });

  it('waits for a checkpoint when the journal is full, and all are there', async () => {
    const count = Math.ceil((4 * RING) / BYTES);
    await until(events, Promise.all(Array.from({ length: 60 }, (_, k) => append(k))));
    for (let k = 60; k < count; k++) await until(events, append(k));
    loseFiles();
    await start();
    expect(store.replica(EXTENT).length).toBe(count * BYTES);
  });

  it('that is too long for the journal is synced in its file', async () => {
    const head = { extent: EXTENT, offset: 0, writer: 1, sequence: 0, committed: 0 };
    const record = encodeRecord(head, Buffer.alloc(RING, 5));
    await until(events, store.append(EXTENT, 1, { offset: 0, record }));
    loseFiles();
    await start();
    expect(store.replica(EXTENT).length).toBe(record.length);
  });
});

describe('a checkpoint', () => {
  it('comes by time, and frees the journal', async () => {
    await fill(3);
    expect(store.journal!.bytes).toBe(RING);
    expect(store.journal!.usedBytes).toBeGreaterThan(3 * BYTES);
    await pass(events, 2 * CHECKPOINT_MS * 1e6);
    expect(store.journal!.usedBytes).toBe(0);
    expect(disk.files.get(`${EXTENT}.extent`)!.durable.length).toBe(SLOTS + 3 * BYTES);
  });

  it('whose sync fails makes the node read-only, before anybody asks', async () => {
    await fill(1);
    disk.isSyncFailing = true;
    await pass(events, 2 * CHECKPOINT_MS * 1e6);
    expect(store.readOnly).toMatch(/a write failed/);
    await expect(until(events, append(1))).rejects.toEqual(code('READ_ONLY'));
    disk.isSyncFailing = false;
    loseFiles();
    await start();
    expect(await first(0)).toBe(1);
  });

  it('is not waited for where the journal itself fails: the append is refused', async () => {
    await fill(1);
    device.isSyncFailing = true;
    await expect(until(events, append(1))).rejects.toEqual(code('READ_ONLY'));
    await expect(until(events, store.fence(EXTENT, 2))).rejects.toEqual(code('READ_ONLY'));
  });
});

describe('with records in the journal alone', () => {
  it('a fence and a seal outlive a loss of power, and what was cut off stays so', async () => {
    await fill(3);
    expect(await until(events, store.seal(EXTENT, 4, 2 * BYTES))).toBe(true);
    loseFiles();
    await start();
    expect(store.replica(EXTENT).state).toMatchObject({ epoch: 4, sealed: 2 * BYTES });
    expect(disk.files.get(`${EXTENT}.extent`)!.cached).toHaveLength(SLOTS + 2 * BYTES);
    await expect(until(events, store.fence(EXTENT, 3))).rejects.toEqual(code('FENCED'));
  });

  it('a deleted extent stays deleted, and its records do not come back in a later copy', async () => {
    await fill(3);
    await until(events, store.remove(EXTENT));
    loseFiles();
    await start();
    expect(store.reports()).toEqual([]);
    await until(events, store.create(EXTENT, 9));
    loseFiles();
    await start();
    expect(store.replica(EXTENT).state.epoch).toBe(9);
    expect(store.replica(EXTENT).length).toBe(0);
  });

  it('a killed process leaves nothing in its file that the next fence does not make durable', async () => {
    await fill(1);
    disk.files.get(`${EXTENT}.extent`)!.changes = [];
    disk.kill();
    device.kill();
    await start();
    const { length } = await until(events, store.fence(EXTENT, 2));
    expect(disk.files.get(`${EXTENT}.extent`)!.durable.length).toBe(SLOTS + length);
  });
});

describe('a journal', () => {
  it('is not needed after an ordered end: another one, or none, will do', async () => {
    await fill(2);
    await until(events, store.close());
    emptyJournal(device, SLOTS + RING);
    await start();
    await until(events, store.close());
    await start({ hasJournal: false });
    expect(await first(BYTES)).toBe(2);
  });

  it('is begun for a folder that had none', async () => {
    await until(events, store.close());
    await start({ hasJournal: false });
    await until(events, store.create(8, 1));
    disk.powerLoss();
    await start();
    expect(store.held(8)).toBeDefined();
    await until(events, store.create(9, 1));
    await until(events, append(0, { extent: 9 }));
    loseFiles();
    await start();
    expect(store.replica(9).length).toBe(BYTES);
  });

  it('that is left out is asked for, and nothing changes', async () => {
    await fill(1);
    loseFiles();
    for (let k = 0; k < 3; k++)
      await expect(start({ hasJournal: false })).rejects.toThrow(/node 1 had a journal and was not ended in order/);
    await start();
    expect(store.identity.lives).toBe(2);
    expect(await first(0)).toBe(1);
  });

  it('that is empty, or an older copy, is refused', async () => {
    const older = device.image();
    await fill(1);
    loseFiles();
    await start();
    loseFiles();
    const own = device.image();
    device.restore(older);
    await expect(start()).rejects.toThrow(/this one, begun in start 1, has another mark/);
    emptyJournal(device, SLOTS + RING);
    await expect(start()).rejects.toThrow(/this one is empty, or damaged/);
    device.restore(own);
    await start();
    expect(await first(0)).toBe(1);
  });

  it('that was copied before the last checkpoint is refused, and so is such a folder', async () => {
    await fill(1);
    const older = { disk: disk.image(), device: device.image() };
    await pass(events, 2 * CHECKPOINT_MS * 1e6);
    await until(events, append(1));
    loseFiles();
    const latest = { disk: disk.image(), device: device.image() };
    device.restore(older.device);
    await expect(start()).rejects.toThrow(/it or the folder is an older copy/);
    device.restore(latest.device);
    disk.restore(older.disk);
    await expect(start()).rejects.toThrow(/it or the folder is an older copy/);
    disk.restore(latest.disk);
    await start();
    expect(await first(BYTES)).toBe(2);
  });

  it('belongs to its folder at every moment of a start and a checkpoint', async () => {
    for (let steps = 0; steps < START_STEPS; steps++) {
      void append(steps).catch(() => {});
      await run(3 * (steps % 8));
      loseFiles();
      void opened().catch(() => {});
      await run(steps);
      loseFiles();
      await start();
    }
  });

  it('is accepted after a start that ended between its two marks, and another that ended before its own', async () => {
    const { folder, begin } = newFolder();
    await begin();
    const { used } = folder;
    await begin('settle');
    expect(folder.used).toBe(used);
    await begin('prepare');
    expect(folder.used).not.toBe(used);
    await begin();
  });

  it('is accepted after a start that was killed before its sync, and another that lost power', async () => {
    const { folder, begin } = newFolder();
    await begin();
    const { used } = folder;
    await begin('sync');
    expect(folder).toEqual({ used, next: expect.any(String) });
    await begin('prepare');
    expect(folder.used).not.toBe(used);
    await begin();
  });

  it('of another node, or with something else in it, is refused', async () => {
    loseFiles();
    disk.empty();
    await expect(start({ node: 2 })).rejects.toThrow(
      /the journal is that of node 1 of cluster test, and not of node 2/,
    );
    device.restore(new Map([['journal', Buffer.alloc(SLOTS + RING, 'a file system')]]));
    await expect(start({ node: 2 })).rejects.toThrow(/something else in it/);
    expect([...disk.files.keys()]).toEqual([]);
  });

  it('of another version is refused, and left as it is', async () => {
    await until(events, append(0));
    loseFiles();
    const left = device.image();
    const file = await until(events, device.open().open('journal'));
    const head = await until(events, DurableValue.load<object>(file));
    await until(events, head.store({ ...head.value, frames: 2 }));
    const changed = device.image();
    await expect(start()).rejects.toMatchObject({
      message: expect.stringContaining("the journal has the format 'frames 2' of another version of rocev2"),
      hint: 'use the version of rocev2 that wrote it; nothing has been changed',
    });
    expect(device.image()).toEqual(changed);

    const journal = Buffer.from(left.get('journal')!);
    for (const at of [0, 2048]) journal.write('SvR2', at, 'latin1');
    device.restore(new Map([['journal', journal]]));
    await expect(start()).rejects.toThrow("the journal has the format 'SvR2' of another version of rocev2");
    expect(device.image().get('journal')).toEqual(journal);

    device.restore(left);
    await start(); // The negative control: the record is there.
    expect(store.replica(EXTENT).length).toBe(BYTES);
  });

  it('that is younger than its folder is refused, however often it is tried', async () => {
    await until(events, store.close());
    const older = disk.image();
    await start();
    await until(events, store.close());
    disk.restore(older);
    for (let k = 0; k < 3; k++) await expect(start()).rejects.toThrow(/the folder of node 1 is an older copy/);
  });
});
