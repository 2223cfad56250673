import { describe, expect, it } from 'vitest';
import type { BlockDevice } from '../../../src/storage-rpc/disk/block-device.js';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { WatchedDisk } from '../../../src/storage-rpc/disk/watched-disk.js';
import { blockDeviceContract, CONTRACT_DISK_BYTES } from '../../contracts/block-device-contract.js';

blockDeviceContract('watched', async () => new WatchedDisk(new MemoryDevice(CONTRACT_DISK_BYTES), () => 0));

describe('a watched disk', () => {
  it('counts requests and bytes of each operation, and times those that succeed', async () => {
    let now = 0;
    class SlowDisk extends MemoryDevice {
      override async read(offset: number, length: number, into: Uint8Array): Promise<void> {
        now += 5000;
        await super.read(offset, length, into);
      }
    }
    const disk = new WatchedDisk(new SlowDisk(1 << 20), () => now);
    await disk.write(0, Buffer.alloc(4096));
    await disk.read(0, 512, Buffer.alloc(512));
    await disk.read(0, 512, Buffer.alloc(512));
    await disk.flush();
    await disk.trim(0, 4096);
    await expect(disk.read(1 << 20, 1, Buffer.alloc(1))).rejects.toMatchObject({ errno: 'EINVAL' });
    const { ops, latency } = disk.activity;
    expect(ops).toEqual([
      { op: 'read', requests: 3, bytes: 1024, errors: 1 },
      { op: 'write', requests: 1, bytes: 4096, errors: 0 },
      { op: 'flush', requests: 1, bytes: 0, errors: 0 },
      { op: 'trim', requests: 1, bytes: 4096, errors: 0 },
      { op: 'zero', requests: 0, bytes: 0, errors: 0 },
    ]);
    expect(latency.map(({ op, count }) => [op, count])).toEqual([
      ['read', 2],
      ['write', 1],
      ['flush', 1],
      ['trim', 1],
    ]);
    expect(latency[0]).toMatchObject({ minNs: 5000, maxNs: 5000 });
    expect(latency[0].bars.reduce((sum, { count }) => sum + count, 0)).toBe(2);
  });

  it('knows of holes where the disk does, and only there', () => {
    const memory = new MemoryDevice(1 << 20);
    expect(new WatchedDisk(memory, () => 0).blockStatus).toBeDefined();
    const plain = Object.assign(Object.create(memory) as BlockDevice, { blockStatus: undefined });
    expect(new WatchedDisk(plain, () => 0).blockStatus).toBeUndefined();
  });
});
