import { expect, test } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { NbdDevice } from '../../../src/storage-rpc/nbd/nbd-device.js';
import { eventually } from '../../support/eventually.js';
import { ServedDisk } from './nbd-pair.js';

const DISK = new MemoryDevice(1 << 20);

test('a client beyond the limit is closed; when another leaves, the next one is served', async () => {
  const served = await ServedDisk.open(DISK, { clientsMax: 2 });
  const open = () => NbdDevice.open(`nbd+unix:///?socket=${served.path}`);
  const [first, second] = [await open(), await open()];
  await expect(open()).rejects.toMatchObject({ code: expect.stringContaining('ERR_ROCE') });
  expect(served.server.counters.turnedAway).toBe(1);
  await first.read(0, 512, Buffer.alloc(512));
  await first.close();
  await eventually(() => served.server.clients === 1);
  const third = await open();
  await Promise.all([second.close(), third.close()]);
  await served.close();
});

test.each([0, 1025, 1.5])('%d clients are out of range', async (clientsMax) => {
  await expect(ServedDisk.open(DISK, { clientsMax })).rejects.toMatchObject({ code: 'ERR_ROCE_OUT_OF_RANGE' });
});
