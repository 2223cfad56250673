/** A disk of a multiple of 512 bytes: its last block reaches past its end. In virtual time. */

import { expect, it } from 'vitest';
import { until } from '../../../../test/support/virtual-time.js';
import { createDisk, openDisk } from '../../src/disk/disks.js';
import { Cluster, TIMING } from '../cluster.js';

const DISK_BYTES = 12 * 4096 + 1536;

it('a disk of twelve blocks and three sectors keeps, zeroes and trims its last sector, also for the next owner', async () => {
  const cluster = new Cluster(1);
  const course = async () => {
    await cluster.start();
    await cluster.sleep(50);
    const common = { clock: cluster.clock, random: cluster.seeds.stream('disk'), timing: TIMING };
    const way = { nodes: cluster.nodesFrom('client'), manager: cluster.managerFrom('client') };
    const parts = { ...common, ...way, reader: cluster.reader() };
    await expect(createDisk(parts, { name: 'vol', sizeBytes: DISK_BYTES + 1, owner: 'maker' })).rejects.toThrow();
    await createDisk(parts, { name: 'vol', sizeBytes: DISK_BYTES, owner: 'maker' });
    const expected = Buffer.alloc(DISK_BYTES);
    const check = async (owner: string, change: (disk: Awaited<ReturnType<typeof openDisk>>) => Promise<void>) => {
      const disk = await openDisk(parts, { name: 'vol', owner, takeOver: true });
      expect(disk.sizeBytes).toBe(DISK_BYTES);
      await change(disk);
      const found = Buffer.alloc(DISK_BYTES, 0xee);
      await disk.read(0, DISK_BYTES, found);
      expect(found.equals(expected)).toBe(true);
      await expect(disk.write(DISK_BYTES, Buffer.alloc(512))).rejects.toMatchObject({ errno: 'ENOSPC' });
      const extents = await disk.blockStatus(0, DISK_BYTES);
      expect(extents.reduce((sum, { lengthBytes }) => sum + lengthBytes, 0)).toBe(DISK_BYTES);
      await disk.close();
      return extents;
    };
    await check('first', async (disk) => {
      expected.fill(1);
      await disk.write(0, expected);
      expected.fill(2, DISK_BYTES - 512);
      await disk.write(DISK_BYTES - 512, expected.subarray(DISK_BYTES - 512));
    });
    await check('second', async (disk) => {
      expected.fill(0, DISK_BYTES - 512);
      await disk.writeZeroes(DISK_BYTES - 512, 512);
      expected.fill(0, 10 * 4096);
      await disk.writeZeroes(10 * 4096, DISK_BYTES - 10 * 4096);
    });
    const extents = await check('third', async (disk) => {
      expected.fill(3, DISK_BYTES - 1536);
      await disk.write(DISK_BYTES - 1536, expected.subarray(DISK_BYTES - 1536));
      expected.fill(0);
      await disk.trim(0, DISK_BYTES);
    });
    expect(extents).toEqual([{ lengthBytes: DISK_BYTES, hole: true, zero: true }]);
  };
  await until(cluster.events, course());
});
