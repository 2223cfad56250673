/** Reads of a disk that no node can answer, in virtual time. */

import { expect, it } from 'vitest';
import { until } from '../../../../test/support/virtual-time.js';
import { createDisk, openDisk } from '../../src/disk/disks.js';
import { Cluster } from '../cluster.js';

const BLOCK = 4096;

it('the owner of a disk is told of reads that fail because no node has the blocks, and of no others', async () => {
  const cluster = new Cluster(1);
  const told: string[] = [];
  const course = async () => {
    await cluster.start();
    await cluster.sleep(50);
    const parts = {
      ...cluster.diskParts(),
      onUnreadable: ({ message }: Error) => told.push(message),
    };
    await createDisk(parts, { name: 'vol', sizeBytes: 16 * BLOCK, owner: 'maker' });
    const disk = await openDisk(parts, { name: 'vol', owner: 'owner', takeOver: false });
    const read = (block: number) => disk.read(block * BLOCK, BLOCK, Buffer.alloc(BLOCK));
    await disk.write(3 * BLOCK, Buffer.alloc(BLOCK, 1));
    await read(3);
    await expect(read(16)).rejects.toMatchObject({ errno: 'EINVAL' });
    expect(told).toEqual([]);
    for (const machine of cluster.machines) cluster.stopNode(machine, true);
    await expect(read(3)).rejects.toMatchObject({ errno: 'EIO' });
    await read(4); // Nothing was written there.
  };
  await until(cluster.events, course());
  expect(told).toEqual([expect.stringMatching(/^EIO: 4096 bytes at 12288 of 'vol' cannot be read: ./)]);
});
