/** The space of a disk that is trimmed and then left alone, in virtual time. */

import { describe, expect, it } from 'vitest';
import { until } from '../../../../test/support/virtual-time.js';
import { createDisk, openDisk } from '../../src/disk/disks.js';
import { Cluster, EXTENT_BYTES, TIMING } from '../cluster.js';

const DISK_BYTES = 1 << 20;
/** Of the disk, in extents of 48 KiB. */
const WRITTEN = 6 * EXTENT_BYTES;
const REST_MS = 2000;

/** What is kept of the log, extents, before and after the disk is trimmed in pieces, and nobody does anything more. */
async function logAround(pieces: number, pieceBytes: number): Promise<{ before: number; after: number }> {
  const cluster = new Cluster(1);
  const course = async () => {
    await cluster.start();
    await cluster.sleep(50);
    const common = { clock: cluster.clock, random: cluster.seeds.stream('disk'), timing: TIMING };
    const way = { nodes: cluster.nodesFrom('client'), manager: cluster.managerFrom('client') };
    const parts = { ...common, ...way, reader: cluster.reader() };
    const extents = async () =>
      (await parts.manager.call('locate', { stream: 'vol.disk-log' }, TIMING.callMs)).extents.length;
    await createDisk(parts, { name: 'vol', sizeBytes: DISK_BYTES, owner: 'maker' });
    const disk = await openDisk(parts, { name: 'vol', owner: 'owner', takeOver: false });
    for (let at = 0; at < WRITTEN; at += EXTENT_BYTES / 2) await disk.write(at, Buffer.alloc(EXTENT_BYTES / 2, 1));
    await cluster.sleep(REST_MS);
    const before = await extents();
    const trims: Promise<void>[] = [];
    for (let k = 0; k < pieces; k++) trims.push(disk.trim(k * pieceBytes, pieceBytes));
    await Promise.all(trims);
    await cluster.sleep(REST_MS);
    return { before, after: await extents() };
  };
  return until(cluster.events, course());
}

describe('a disk that is left alone', () => {
  it('has given the space back of what was trimmed, at once or in pieces', async () => {
    for (const pieces of [1, 36]) {
      const { before, after } = await logAround(pieces, WRITTEN / pieces);
      expect(before).toBeGreaterThan(5);
      expect(after).toBeLessThanOrEqual(2);
    }
  });

  it('writes no checkpoint for less than an extent', async () => {
    const { before, after } = await logAround(1, EXTENT_BYTES / 2);
    expect(after).toBe(before);
  });
});
