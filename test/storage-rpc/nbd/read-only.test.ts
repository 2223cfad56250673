/** An export that can only be read says so, and means it. */

import { expect, test } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { NbdDevice } from '../../../src/storage-rpc/nbd/nbd-device.js';
import { ServedDisk } from './nbd-pair.js';
import { CMD, RawClient, request } from './raw-client.js';

const SIZE = 1 << 20;
const EPERM = 1;

test.each([true, false])('read-only: %s', async (readOnly) => {
  const disk = new MemoryDevice(SIZE);
  await disk.write(0, Buffer.alloc(4096, 7));
  await using served = {
    disk: await ServedDisk.open(disk, { readOnly }),
    [Symbol.asyncDispose]: () => served.disk.close(),
  };
  const device = await NbdDevice.open(`nbd+unix:///?socket=${served.disk.path}`);
  expect(device.readOnly).toBe(readOnly);
  const into = Buffer.alloc(4096);
  await device.read(0, 4096, into);
  expect(into[0]).toBe(7);
  await device.flush();
  await device.close();
  // A client that does not care what it was told.
  const client = await RawClient.inTransmission(served.disk.path);
  for (const op of [CMD.WRITE, CMD.TRIM, CMD.WRITE_ZEROES]) {
    client.send(request(op, 0, 4096, op === CMD.WRITE ? { data: Buffer.alloc(4096, 1) } : {}));
    const { type, data } = await client.reply();
    const errno = type >= 0x8000 ? data.readUInt32BE(0) : 0;
    expect(errno, `${op}`).toBe(readOnly ? EPERM : 0);
  }
  client.socket.destroy();
  await disk.read(0, 4096, into);
  expect(into[0]).toBe(readOnly ? 7 : 0);
});
