/** Entries of storage and extents, with each parameter replaced by what it cannot be. Paths stay valid: a text would be a file. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openExtents, serveManager } from '../../../packages/extents/src/index.js';
import { openDevice, type RdmaDevice } from '../../../src/index.js';
import {
  FileDevice,
  MemoryDevice,
  NbdServer,
  openBackend,
  SuEndpoint,
  SuStreamServer,
} from '../../../src/storage-rpc/index.js';
import { type Call, type Case, close, wronglyTaken } from '../../support/wrong-arguments.js';

const HOST = '127.65.5.1';
let device: RdmaDevice;
let cases: readonly Case[];
const folder = mkdtempSync(join(tmpdir(), 'rocev2-arguments-'));

beforeAll(async () => {
  device = await openDevice({ address: HOST, udpPort: 0 });
  const disk = new MemoryDevice(1 << 20);
  const openFile = (options: object) => FileDevice.open({ ...options, path: join(folder, 'disk') });
  const startManager = (options: object) => serveManager({ ...options, folder: join(folder, 'manager') } as never);
  cases = [
    { name: 'FileDevice.open', call: openFile as Call, args: [{ sizeBytes: 1 << 20, create: true }], undo: close },
    { name: 'openBackend', call: openBackend as Call, args: ['memory', 1 << 20, {}], undo: close },
    {
      name: 'NbdServer.open',
      call: NbdServer.open as Call,
      undo: close,
      args: [{ listen: { host: HOST, port: 0 }, exportName: 'x', description: 'x', device: disk, readOnly: false }],
    },
    { name: 'SuEndpoint.open', call: SuEndpoint.open as Call, args: [device, { poolBytesMax: 1 << 22 }], undo: close },
    { name: 'SuStreamServer.open', call: SuStreamServer.open as Call, args: [{ host: HOST, port: 0 }], undo: close },
    {
      name: 'serveManager',
      call: startManager as Call,
      args: [{ device, port: 0, extentBytes: 1 << 20 }],
      undo: close,
    },
    { name: 'openExtents', call: openExtents as Call, args: [{ device, manager: 'x' }], undo: close },
  ];
}, 60_000);
afterAll(async () => {
  await device.close();
  rmSync(folder, { recursive: true });
});

it('arguments that cannot be are refused with a RoceError', async () => {
  expect(await wronglyTaken(cases)).toEqual([]);
}, 600_000);
