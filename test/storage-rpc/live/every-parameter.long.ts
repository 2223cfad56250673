/** Entries of storage and extents, with each parameter replaced by what it cannot be. Paths stay valid: a text would be a file. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { diskOf, openExtents, serveManager, serveNode } from '../../../packages/extents/src/index.js';
import { openDevice, type RdmaDevice } from '../../../src/index.js';
import {
  type BlockDevice,
  FileDevice,
  MemoryDevice,
  NbdDevice,
  NbdServer,
  openBackend,
  Scrubber,
  StorageClient,
  StorageServer,
  SuDuplex,
  SuEndpoint,
  SuStreamClient,
  SuStreamServer,
} from '../../../src/storage-rpc/index.js';
import { bound, type Call, type Case, close, wronglyTaken } from '../../support/wrong-arguments.js';

const HOST = '127.65.5.1';
let device: RdmaDevice;
let cases: readonly Case[];
const opened: Array<{ close(): unknown }> = [];
const folder = mkdtempSync(join(tmpdir(), 'rocev2-arguments-'));

const kept = <T extends { close(): unknown }>(thing: T): T => {
  opened.push(thing);
  return thing;
};

/** The calls of a disk. The offsets and lengths are valid for every disk of this file. */
function diskCases(name: string, disk: BlockDevice): Case[] {
  const data = Buffer.alloc(4096);
  return [
    { name: `${name}.read`, call: bound(disk, 'read'), args: [0, 4096, data] },
    { name: `${name}.write`, call: bound(disk, 'write'), args: [0, data, { fua: false }] },
    { name: `${name}.trim`, call: bound(disk, 'trim'), args: [0, 4096] },
    { name: `${name}.writeZeroes`, call: bound(disk, 'writeZeroes'), args: [0, 4096, { fua: false, noHole: true }] },
    ...(['blockStatus', 'prefetch'] as const)
      .filter((method) => disk[method] !== undefined)
      .map((method) => ({ name: `${name}.${method}`, call: bound(disk, method), args: [0, 4096] })),
  ];
}

beforeAll(async () => {
  device = await openDevice({ address: HOST, udpPort: 0 });
  const disk = new MemoryDevice(1 << 20);
  const openFile = (options: object) => FileDevice.open({ ...options, path: join(folder, 'disk') });
  const startManager = (options: object) => serveManager({ ...options, folder: join(folder, 'manager') } as never);
  const startNode = (options: object) => serveNode({ ...options, folder: join(folder, 'node') } as never);
  const flow = { recovery: 'go-back-n', rateControl: { name: 'none' }, dscp: 26 };
  const limit = { iops: 1000, bytesPerS: 1e6 };
  const server = kept(await StorageServer.open({ host: HOST, port: 0, namedDisks: [{ name: 'd', device: disk }] }));
  const client = kept(await StorageClient.connect({ host: HOST, port: server.port, disk: 'd' }));
  const nbd = kept(
    await NbdServer.open({ listen: { host: HOST, port: 0 }, exportName: 'x', description: 'x', device: disk }),
  );
  const nbdDisk = kept(await NbdDevice.open(nbd.uri));
  const file = kept(await openFile({ sizeBytes: 1 << 20, create: true }));
  const endpoint = kept(await SuEndpoint.open(device, { poolBytesMax: 1 << 22 }));
  const streams = kept(await SuStreamServer.open({ host: HOST, port: 0, onStream: () => {} }));
  const manager = kept(await startManager({ device, port: 0, extentBytes: 1 << 20 }));
  const extents = kept(await openExtents({ device, manager: manager.address }));
  for (const name of ['a', 'b', 'c']) {
    kept(await serveNode({ device, folder: join(folder, name), manager: manager.address, domain: name }));
  }
  await extents.createDisk('disk', { sizeBytes: 1 << 20 });
  const streamDisk = kept(await extents.openDisk('disk', { owner: 'cases' }));
  await extents.createStream('stream');
  const writer = kept(await extents.openStream('stream', { owner: 'cases' }));
  cases = [
    { name: 'FileDevice.open', call: openFile as Call, args: [{ sizeBytes: 1 << 20, create: true }], undo: close },
    { name: 'openBackend', call: openBackend as Call, args: ['memory', 1 << 20, {}], undo: close },
    {
      name: 'NbdServer.open',
      call: NbdServer.open as Call,
      undo: close,
      args: [{ listen: { host: HOST, port: 0 }, exportName: 'x', description: 'x', device: disk, readOnly: false }],
    },
    { name: 'NbdDevice.open', call: NbdDevice.open as Call, args: [nbd.uri, {}], undo: close },
    { name: 'MemoryDevice', call: (bytes: unknown) => new MemoryDevice(bytes as number), args: [4096], undo: close },
    { name: 'MemoryDevice.grown', call: bound(new MemoryDevice(4096), 'grown'), args: [8192] },
    ...diskCases('MemoryDevice', disk),
    ...diskCases('FileDevice', file),
    ...diskCases('NbdDevice', nbdDisk),
    ...diskCases('RemoteDisk', client.disk),
    ...diskCases('StreamDisk', streamDisk),
    { name: 'StreamWriter.append', call: bound(writer, 'append'), args: [Buffer.alloc(8)] },
    {
      name: 'Scrubber',
      call: (options: unknown) => new Scrubber(options as never),
      args: [{ disk: file, clock: device.clock, bytesPerSecond: 1e6, onNotice: () => {} }],
      undo: (scrubber: Scrubber) => scrubber.stop(),
    },
    {
      name: 'StorageServer.open',
      call: StorageServer.open as Call,
      undo: close,
      args: [
        {
          disks: [disk],
          namedDisks: [],
          host: HOST,
          port: 0,
          device,
          leaseNs: 1e10,
          inlineWriteBytesMax: 4096,
          poolBytesMax: 1 << 22,
          memoryBytesMax: 192 << 20,
          pullBytesMax: 1 << 20,
          limit,
          onNotice: () => {},
          ...flow,
        },
      ],
    },
    { name: 'StorageServer.addDisk', call: bound(server, 'addDisk'), args: [{ name: 'd', device: disk, limit }] },
    { name: 'StorageServer.removeDisk', call: bound(server, 'removeDisk'), args: ['d', { force: false }] },
    { name: 'StorageServer.exchangeDisk', call: bound(server, 'exchangeDisk'), args: ['d', async () => disk] },
    { name: 'StorageServer.renewDisk', call: bound(server, 'renewDisk'), args: [disk] },
    {
      name: 'StorageClient.connect',
      call: StorageClient.connect as Call,
      undo: close,
      args: [
        {
          host: HOST,
          port: server.port,
          tcp: true,
          disk: 'd',
          access: 'read',
          label: 'x',
          standby: false,
          sessions: 1,
          inlineWriteBytesMax: 4096,
          path: { holdDownNs: 1e9, holdDownMaxNs: 1e10, cleanNs: 1e9 },
          giveUpNs: 1e9,
          onNotice: () => {},
          onEvent: () => {},
          ...flow,
        },
      ],
    },
    { name: 'StorageClient.allocate', call: bound(client, 'allocate'), args: [4096] },
    { name: 'StorageClient.free', call: bound(client, 'free'), args: [Buffer.alloc(1)] },
    { name: 'StorageClient.moveTo', call: bound(client, 'moveTo'), args: ['tcp'] },
    { name: 'SuEndpoint.open', call: SuEndpoint.open as Call, args: [device, { poolBytesMax: 1 << 22 }], undo: close },
    { name: 'SuEndpoint.connect', call: bound(endpoint, 'connect'), args: [HOST, 1], undo: close },
    { name: 'SuEndpoint.dial', call: bound(endpoint, 'dial'), args: [HOST, 1, 'su-rdma'], undo: close },
    { name: 'SuEndpoint.listen', call: bound(endpoint, 'listen'), args: [HOST, 0, () => {}] },
    {
      name: 'SuStreamServer.open',
      call: SuStreamServer.open as Call,
      args: [{ host: HOST, port: 0, onStream: () => {} }],
      undo: close,
    },
    {
      name: 'SuStreamClient.to',
      call: SuStreamClient.to as Call,
      args: [{ host: HOST, port: streams.port }],
      undo: close,
    },
    { name: 'SuDuplex', call: (stream: unknown) => new SuDuplex(stream as never), args: [{}] },
    {
      name: 'serveManager',
      call: startManager as Call,
      args: [{ device, port: 0, extentBytes: 1 << 20, onNotice: () => {} }],
      undo: close,
    },
    {
      name: 'serveNode',
      call: startNode as Call,
      undo: close,
      args: [
        {
          device,
          manager: '127.65.5.1:1',
          port: 0,
          host: HOST,
          domain: 'a',
          journalBytes: 1 << 20,
          keepDeletedMs: 1000,
          trustFolder: false,
          transport: 'tcp',
          onNotice: () => {},
        },
      ],
    },
    { name: 'openExtents', call: openExtents as Call, args: [{ device, manager: 'x', transport: 'tcp' }], undo: close },
    { name: 'diskOf', call: diskOf as Call, args: ['disk.log'] },
    { name: 'ExtentsClient.createStream', call: bound(extents, 'createStream'), args: ['s'] },
    { name: 'ExtentsClient.deleteStream', call: bound(extents, 'deleteStream'), args: ['none'] },
    { name: 'ExtentsClient.extents', call: bound(extents, 'extents'), args: ['none'] },
    {
      name: 'ExtentsClient.openStream',
      call: bound(extents, 'openStream'),
      args: ['s', { owner: 'a', takeOver: false }],
    },
    {
      name: 'ExtentsClient.read',
      call: async (...args: never[]) => {
        for await (const _ of (extents.read as (...args: unknown[]) => AsyncIterable<unknown>)(...args)) break;
      },
      args: ['none', { from: 0 }],
    },
    { name: 'ExtentsClient.acceptExtents', call: bound(extents, 'acceptExtents'), args: [[1]] },
    { name: 'ExtentsClient.undeleteStream', call: bound(extents, 'undeleteStream'), args: ['none'] },
    { name: 'ExtentsClient.undeleteDisk', call: bound(extents, 'undeleteDisk'), args: ['none'] },
    { name: 'ExtentsClient.createDisk', call: bound(extents, 'createDisk'), args: ['none', { sizeBytes: 512 }] },
    { name: 'ExtentsClient.snapshotDisk', call: bound(extents, 'snapshotDisk'), args: ['none', 'copy'] },
    { name: 'ExtentsClient.cloneDisk', call: bound(extents, 'cloneDisk'), args: ['none', 'copy'] },
    {
      name: 'ExtentsClient.openDisk',
      call: bound(extents, 'openDisk'),
      args: ['none', { owner: 'a', takeOver: false }],
    },
    { name: 'ExtentsClient.diskOwner', call: bound(extents, 'diskOwner'), args: ['none'] },
    { name: 'ExtentsClient.diskMetadata', call: bound(extents, 'diskMetadata'), args: ['none'] },
    { name: 'ExtentsClient.deleteDisk', call: bound(extents, 'deleteDisk'), args: ['none'] },
  ];
}, 60_000);
afterAll(async () => {
  for (const thing of opened.reverse()) await thing.close();
  await device.close();
  rmSync(folder, { recursive: true });
});

it('arguments that cannot be are refused with a RoceError', async () => {
  expect(await wronglyTaken(cases)).toEqual([]);
}, 600_000);
