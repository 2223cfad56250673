/** Leases that end because no manager renews them, in virtual time: the owner continues if nobody else has opened the stream. */

import { describe, expect, it } from 'vitest';
import { NotOwnerError } from '../../../src/storage-rpc/disk/block-device.js';
import { until } from '../../../test/support/virtual-time.js';
import { createDisk, openDisk, removeDisk } from '../src/disk/disks.js';
import type { StreamDisk } from '../src/disk/stream-disk.js';
import { codeOf } from '../src/messages.js';
import type { StreamWriter } from '../src/stream-writer.js';
import { Cluster, TIMING } from './cluster.js';

const STREAM = 'log';
const BLOCK = 4096;
/** Longer than a lease, a call and a renewal. */
const STALL_MS = 2 * TIMING.leaseMs;
const SEEDS = [1, 3];

/** `seed` 3 has timers that fire early and late. */
function inVirtualTime(seed: number, course: (cluster: Cluster) => Promise<void>): Promise<void> {
  const cluster = new Cluster(seed);
  const run = async () => {
    await cluster.start();
    await cluster.sleep(2 * TIMING.reportMs);
    await cluster.managerFrom('client').call('createStream', { stream: STREAM }, 1000);
    await course(cluster);
  };
  return until(cluster.events, run());
}

const ownerOf = async (cluster: Cluster) => (await cluster.metadata.get(`owner/${STREAM}`))?.value;

describe.each(SEEDS)('the owner of a stream whose lease has ended, seed %i', (seed) => {
  const opened = (course: (cluster: Cluster, writer: StreamWriter) => Promise<void>) =>
    inVirtualTime(seed, async (cluster) => {
      const { writer } = await cluster.writer(STREAM, 'first');
      await writer.append(Buffer.from('before'));
      await course(cluster, writer);
    });

  it('knows that it may have lost it, and continues when a manager is back and nobody has taken it', () =>
    opened(async (cluster, writer) => {
      cluster.killManager();
      await cluster.sleep(STALL_MS);
      expect(writer.isHeld).toBe(false);
      expect(writer.failure).toBeUndefined();
      expect(await ownerOf(cluster)).toBeUndefined(); // The lease has ended for everybody.
      const certain = writer.whenCertain();
      await cluster.startManager();
      await certain;
      expect(writer.isHeld).toBe(true);
      expect(await ownerOf(cluster)).toBe('first');
      await writer.append(Buffer.from('after'));
      await cluster.sleep(STALL_MS);
      expect(writer.isHeld).toBe(true); // It is renewed as before.
      await expect(cluster.writer(STREAM, 'second', false)).rejects.toMatchObject({ remoteCode: 'BUSY' });
    }));

  it('is fenced when another one has opened it, also when that one has closed it again', () =>
    opened(async (cluster, writer) => {
      cluster.network.cut('client', 'manager');
      await cluster.sleep(STALL_MS);
      cluster.network.heal();
      // The first one has not asked yet.
      const { writer: second } = await cluster.writer(STREAM, 'second', false);
      await second.append(Buffer.from('by the second'));
      await second.close();
      await writer.whenCertain();
      expect(codeOf(writer.failure)).toBe('FENCED');
      expect(writer.failure?.message).toContain(`another program has opened the stream '${STREAM}' since`);
      await expect(writer.append(Buffer.from('late'))).rejects.toBe(writer.failure);
    }));

  it('fails when the stream was deleted', () =>
    opened(async (cluster, writer) => {
      cluster.network.cut('client', 'manager');
      await cluster.sleep(STALL_MS);
      await cluster.manager!.handle('deleteStream', { stream: STREAM });
      cluster.network.heal();
      await writer.whenCertain();
      expect(codeOf(writer.failure)).toBe('MISSING');
    }));

  it('can close it while neither a manager nor a node answers: what is not stored fails when the lease ends', () =>
    opened(async (cluster, writer) => {
      cluster.network.lossRate = 1;
      const append = writer.append(Buffer.from('never stored'));
      append.catch(() => {});
      await writer.close();
      await expect(append).rejects.toMatchObject({ code: 'ERR_ROCE_TIMEOUT' });
    }));

  it('gives it back for good: a renewal in flight does not come after the release', () =>
    opened(async (cluster, writer) => {
      const renewal = writer.renew();
      await writer.close();
      await renewal.catch(() => {});
      await cluster.sleep(50);
      expect(await ownerOf(cluster)).toBeUndefined();
    }));
});

describe.each(SEEDS)('a disk whose lease has ended, seed %i', (seed) => {
  const opened = (course: (cluster: Cluster, disk: StreamDisk, notices: string[]) => Promise<void>) =>
    inVirtualTime(seed, async (cluster) => {
      const notices: string[] = [];
      const disk = partsOf(cluster, notices);
      await createDisk(disk, { name: 'vol', sizeBytes: 16 * BLOCK, owner: 'maker' });
      const own = await openDisk(disk, { name: 'vol', owner: 'first', takeOver: false });
      await own.write(0, Buffer.alloc(BLOCK, 1));
      await course(cluster, own, notices);
    });
  const partsOf = (cluster: Cluster, notices: string[] = []) => ({
    ...cluster.diskParts(),
    onNotice: (notice: string) => notices.push(notice),
  });
  const read = async (disk: StreamDisk) => {
    const into = Buffer.alloc(BLOCK);
    await disk.read(0, BLOCK, into);
    return into[0];
  };

  it('keeps requests waiting, and answers them when a manager is back', () =>
    opened(async (cluster, disk, notices) => {
      cluster.killManager();
      await cluster.sleep(STALL_MS);
      let isAnswered = false;
      const late = Promise.all([read(disk), disk.write(BLOCK, Buffer.alloc(BLOCK, 2)), disk.flush()]).finally(() => {
        isAnswered = true;
      });
      await cluster.sleep(STALL_MS);
      expect(isAnswered).toBe(false);
      expect(disk.notOwner).toBeInstanceOf(NotOwnerError); // Clients that can follow the disk look for another owner.
      await cluster.startManager();
      expect((await late)[0]).toBe(1);
      expect(disk.notOwner).toBeUndefined();
      expect(notices).toEqual([
        expect.stringMatching(/^the lease of the disk 'vol' has ended, because no manager renewed it in time \(.*wait/),
        "the lease of the disk 'vol' is valid again: requests continue",
      ]);
      await disk.close();
    }));

  it('reads nothing old when another owner has written: what waited fails', () =>
    opened(async (cluster, disk) => {
      cluster.network.cut('client', 'manager');
      await cluster.sleep(STALL_MS);
      const late = read(disk);
      late.catch(() => {});
      cluster.network.heal();
      const second = await openDisk(partsOf(cluster), { name: 'vol', owner: 'second', takeOver: false });
      await second.write(0, Buffer.alloc(BLOCK, 9));
      await expect(late).rejects.toThrow("the disk 'vol' now has another owner: another program has opened the stream");
      expect(await read(second)).toBe(9);
      await disk.close();
      await second.close();
    }));

  it('can be closed while neither a manager nor a node answers', () =>
    opened(async (cluster, disk) => {
      cluster.network.lossRate = 1;
      await disk.close();
    }));

  it('can be closed, and what waited fails', () =>
    opened(async (cluster, disk) => {
      cluster.killManager();
      await cluster.sleep(STALL_MS);
      const late = read(disk);
      late.catch(() => {});
      await disk.close();
      await expect(late).rejects.toMatchObject({ errno: 'ESHUTDOWN' });
    }));

  it('is gone when it was deleted', () =>
    opened(async (cluster, disk) => {
      cluster.network.cut('client', 'manager');
      await cluster.sleep(STALL_MS);
      cluster.network.heal();
      await removeDisk(partsOf(cluster), 'vol');
      await expect(read(disk)).rejects.toBeInstanceOf(NotOwnerError);
    }));
});
