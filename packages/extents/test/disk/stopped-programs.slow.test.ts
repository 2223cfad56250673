/**
 * A disk is made, copied and deleted in several steps. The program is stopped before each of them, and the manager before each transaction of one step: what is left
 * is a whole disk or none, is listed, and can be deleted and made anew; the disk that was copied, and other copies, have lost nothing.
 */

import { describe, expect, it } from 'vitest';
import { settle } from '../../../../test/support/virtual-time.js';
import { RpcError } from '../../../rpc/src/rpc-error.js';
import { DISK_BLOCK_BYTES } from '../../src/disk/block-map.js';
import type { DiskParts } from '../../src/disk/disk-parts.js';
import { copyDisk, createDisk, listDisks, openDisk, removeDisk } from '../../src/disk/disks.js';
import { ExtentReader } from '../../src/extent-reader.js';
import type { Manager } from '../../src/messages.js';
import { Cluster, COMBINER, READ_BYTES, TIMING } from '../cluster.js';

const BLOCKS = 24;
const SIZE = BLOCKS * DISK_BLOCK_BYTES;
/** More steps than any of them has. */
const STEPS_MAX = 40;

/** A program whose call of the manager with this number is its last: it is never made. */
function program(cluster: Cluster, name: string, last = Number.POSITIVE_INFINITY) {
  let calls = 0;
  let stop = () => {};
  const stopped = new Promise<'stopped'>((resolve) => {
    stop = () => resolve('stopped');
  });
  const inner = cluster.managerFrom('client');
  const manager: Manager = {
    call: (...args) => {
      if (calls++ < last) return inner.call(...args);
      stop();
      return new Promise(() => {});
    },
  };
  const random = cluster.seeds.stream(name);
  const common = { nodes: cluster.nodesFrom('client'), manager, clock: cluster.clock, random, timing: TIMING };
  const reader = new ExtentReader({ ...common, combiner: COMBINER, readBytes: READ_BYTES });
  const parts: DiskParts = { ...common, reader };
  return { parts, stopped };
}

async function inVirtualTime(cluster: Cluster, work: Promise<void>): Promise<void> {
  let isDone = false;
  const done = () => {
    isDone = true;
  };
  work.then(done, done);
  for (let count = 0; !isDone && count < 400_000; count++) {
    await settle();
    if (!isDone && !cluster.events.step()) throw new Error('nothing moves');
  }
  expect(isDone, 'settles').toBe(true);
  await work;
}

const patternOf = (fill: number) => Buffer.alloc(SIZE, fill);

/** Writes all of a disk, and reads it. */
async function write(parts: DiskParts, name: string, fill: number): Promise<void> {
  const disk = await openDisk(parts, { name, owner: name, takeOver: true });
  await disk.write(0, patternOf(fill));
  await disk.compact();
  await disk.close();
}

async function read(parts: DiskParts, name: string): Promise<Buffer> {
  const disk = await openDisk(parts, { name, owner: name, takeOver: true });
  try {
    const bytes = Buffer.alloc(SIZE);
    await disk.read(0, SIZE, bytes);
    return bytes;
  } finally {
    await disk.close();
  }
}

describe('a program that is stopped before any step', () => {
  /** Runs `work` once for each step, until it is not stopped any more. `check` sees what it has left. */
  async function beforeEachStep(
    work: (parts: DiskParts) => Promise<void>,
    check: (parts: DiskParts, cluster: Cluster) => Promise<void>,
  ): Promise<number> {
    for (let step = 0; step < STEPS_MAX; step++) {
      const cluster = new Cluster(step + 1);
      let isOver = false;
      await inVirtualTime(
        cluster,
        (async () => {
          await cluster.start();
          await cluster.sleep(50);
          const { parts } = program(cluster, 'before');
          await createDisk(parts, { name: 'vol', sizeBytes: SIZE, owner: 'maker' });
          await write(parts, 'vol', 1);
          const stopping = program(cluster, 'stopping', step);
          isOver = (await Promise.race([stopping.stopped, work(stopping.parts)])) !== 'stopped';
          await cluster.sleep(2 * TIMING.leaseMs); // Nobody owns anything any more.
          await check(program(cluster, 'after').parts, cluster);
        })(),
      );
      if (isOver) return step;
    }
    throw new Error('it is never done');
  }

  const isListed = async (parts: DiskParts, name: string) =>
    (await listDisks(parts, await parts.manager.call('status', {}, TIMING.callMs))).some(({ disk }) => disk === name);

  /** What is left of it is deleted, if anything is, and it is made anew. */
  async function again(parts: DiskParts, name: string, make: () => Promise<void>): Promise<void> {
    if (await isListed(parts, name)) await removeDisk(parts, name);
    await make();
    expect(await isListed(parts, name)).toBe(true);
  }

  it.each([true, false])('leaves a whole copy or none, snapshot: %s', async (isSnapshot) => {
    const copy = (parts: DiskParts) => copyDisk(parts, { source: 'vol', name: 'copy', isSnapshot, owner: 'copier' });
    const ends = { whole: 0, none: 0 };
    const steps = await beforeEachStep(copy, async (parts, cluster) => {
      const before = await read(parts, 'copy').catch((error: Error) => error);
      // The disk gives back what only its past needs, and nodes delete it.
      await write(parts, 'vol', 2);
      await write(parts, 'vol', 3);
      await cluster.sleep(300);
      const found = await read(parts, 'copy').catch((error: Error) => error);
      expect(found instanceof Error, 'is as whole as before').toBe(before instanceof Error);
      if (found instanceof Error) {
        expect(found).toBeInstanceOf(RpcError);
        expect((found as RpcError).remoteCode).toBe('MISSING');
        ends.none++;
      } else {
        expect(found.equals(patternOf(1))).toBe(true);
        ends.whole++;
      }
      expect((await read(parts, 'vol')).equals(patternOf(3))).toBe(true);
      await again(parts, 'copy', () => copy(parts));
      expect((await read(parts, 'copy')).equals(patternOf(3))).toBe(true);
    });
    expect(steps).toBeGreaterThan(8);
    expect(ends.none).toBeGreaterThan(5);
    expect(ends.whole).toBeGreaterThan(0);
  });

  it('leaves something that can be deleted where a disk was made', async () => {
    const make = (parts: DiskParts) => createDisk(parts, { name: 'new', sizeBytes: SIZE, owner: 'maker' });
    await beforeEachStep(make, async (parts) => {
      await again(parts, 'new', () => make(parts));
      expect((await read(parts, 'new')).equals(patternOf(0))).toBe(true);
    });
  });

  it('leaves what can be deleted again where a disk was deleted', async () => {
    const remove = (parts: DiskParts) => removeDisk(parts, 'vol');
    const steps = await beforeEachStep(remove, async (parts) => {
      await again(parts, 'vol', () => createDisk(parts, { name: 'vol', sizeBytes: SIZE, owner: 'maker' }));
      expect((await read(parts, 'vol')).equals(patternOf(0))).toBe(true);
    });
    expect(steps).toBe(2);
  });
});

describe('a manager that is stopped before any transaction', () => {
  const EXTENTS = 250;
  /** A manager that has started answers when its nodes have confirmed the metadata. */
  const STARTED_MS = 10 * TIMING.reportMs;

  it('leaves the last ones of the extents that a stream was to have, and the same request goes on', async () => {
    const cluster = new Cluster(1);
    await inVirtualTime(
      cluster,
      (async () => {
        await cluster.start();
        const { manager } = program(cluster, 'client').parts;
        const extents = Array.from({ length: EXTENTS }, (_, k) => 1000 + k);
        for (let k = 0; k < EXTENTS; k += 50) {
          const put = extents.slice(k, k + 50).map((extent) => ({
            key: `extent/${String(extent).padStart(12, '0')}`,
            value: JSON.stringify({ epoch: 2, sealed: 512, replicas: [1, 2, 3] }),
          }));
          await cluster.metadata.commit({ compare: [], put });
        }
        // Others need them, too: nothing is deleted meanwhile.
        const other = { epoch: 1, extents };
        await cluster.metadata.commit({ compare: [], put: [{ key: 'stream/other', value: JSON.stringify(other) }] });
        await manager.call('createStream', { stream: 'new' }, STARTED_MS);
        const request = { stream: 'new', owner: 'o', leaseMs: 1e6, takeOver: false };
        const { epoch } = await manager.call('openStream', request, STARTED_MS);
        const there = async () =>
          (JSON.parse((await cluster.metadata.get('stream/new'))!.value) as typeof other).extents;
        for (const [stopAt, left] of [
          [0, 0],
          [1, 100],
          [2, 200],
        ]) {
          let commits = 0;
          const stop = cluster.metadata.watch('stream/new', () => {
            if (++commits === stopAt) cluster.killManager();
          });
          if (stopAt === 0) cluster.killManager();
          await manager.call('adopt', { stream: 'new', epoch, extents }, STARTED_MS).catch(() => {});
          stop();
          expect(await there()).toEqual(extents.slice(EXTENTS - left));
          await cluster.startManager();
          await cluster.metadata.commit({
            compare: [],
            put: [{ key: 'stream/new', value: JSON.stringify({ epoch, extents: extents.slice(EXTENTS - left) }) }],
          });
        }
        await manager.call('adopt', { stream: 'new', epoch, extents }, STARTED_MS);
        expect(await there()).toEqual(extents);
      })(),
    );
  });
});
