import { expect, test } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { NbdDevice } from '../../../src/storage-rpc/nbd/nbd-device.js';
import { ServedDisk } from './nbd-pair.js';

const DISK = new MemoryDevice(1 << 20);
/** 4096 bytes, the longest string of the protocol. */
const LONGEST = 'é'.repeat(2048);

test.each(['exportName', 'description'])('%s has a limit in bytes', async (option) => {
  await expect(ServedDisk.open(DISK, { [option]: `${LONGEST}x` })).rejects.toMatchObject({
    code: 'ERR_ROCE_OUT_OF_RANGE',
    message: expect.stringContaining(`${option} has 4097 bytes`),
  });
});

test('the longest name reaches its export', async () => {
  const served = await ServedDisk.open(DISK, { exportName: LONGEST, description: LONGEST });
  const device = await NbdDevice.open(`nbd+unix:///${encodeURIComponent(LONGEST)}?socket=${served.path}`);
  expect(device.sizeBytes).toBe(DISK.sizeBytes);
  await device.close();
  await served.close();
});
