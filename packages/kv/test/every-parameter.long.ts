/** Every exported function and method of kv, primitives and rpc, with each parameter replaced by what it cannot be. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openDevice, type RdmaDevice } from '../../../src/index.js';
import { bound, type Call, type Case, close, wronglyTaken } from '../../../test/support/wrong-arguments.js';
import { openPrimitives, servePrimitives } from '../../primitives/src/index.js';
import { connectRpc, defineService, rpcOverStream, serveRpc } from '../../rpc/src/index.js';
import { openKv, openKvShards, serveKv } from '../src/index.js';

const carrier = () => rpcOverStream(new PassThrough());

const HOST = '127.65.4.1';
let device: RdmaDevice;
let cases: readonly Case[];
const folder = mkdtempSync(join(tmpdir(), 'rocev2-arguments-'));
const opened: Array<{ close(): unknown }> = [];

const kept = <T extends { close(): unknown }>(thing: T): T => {
  opened.push(thing);
  return thing;
};

beforeAll(async () => {
  device = await openDevice({ address: HOST, udpPort: 0 });
  const wait = { timeoutMs: 20 };
  const sizes = { bytes: 1 << 20, entries: 64, keyBytesMax: 32, valueBytesMax: 64, inlineBytes: 32, graceMs: 100 };
  const store = kept(await serveKv({ device, port: 0, ...sizes }));
  const kv = kept(await openKv({ device, host: HOST, port: store.port }));
  const served = kept(await servePrimitives({ device, port: 0 }));
  const primitives = kept(await openPrimitives({ device, host: HOST, port: served.port }));
  const lock = await primitives.lock('own', { leaseMs: 500 });
  const semaphore = await primitives.semaphore('own-permits', { permits: 2, leaseMs: 500 });
  const consumer = await served.ring('own', { slots: 4, bytes: 64 });
  const release = (lease: { release(): Promise<void> } | undefined) => lease?.release();
  const shards = kept(await openKvShards({ device, owners: [{ host: HOST, port: store.port }] }));
  const key = 'key';
  const value = Buffer.from('value');
  cases = [
    {
      name: 'serveKv',
      call: serveKv as Call,
      undo: close,
      args: [
        {
          device,
          port: 0,
          host: HOST,
          codec: 'bytes',
          eviction: 'lru',
          readersMax: 4,
          onNotice: () => {},
          snapshot: { file: join(folder, 'snapshot'), everyMs: 1000 },
          ...sizes,
        },
      ],
    },
    {
      name: 'openKv',
      call: openKv as Call,
      undo: close,
      args: [{ device, host: HOST, port: store.port, codec: 'bytes', reconnectMs: 0, ...wait }],
    },
    {
      name: 'openKvShards',
      call: openKvShards as Call,
      undo: close,
      args: [{ device, owners: [{ host: HOST, port: store.port }], codec: 'bytes', reconnectMs: 0, ...wait }],
    },
    ...[kv, store, shards].flatMap((one): Case[] => [
      { name: 'Kv.get', call: bound(one, 'get'), args: [key, wait] },
      { name: 'Kv.getEntry', call: bound(one, 'getEntry'), args: [key, wait] },
      { name: 'Kv.getMany', call: bound(one, 'getMany'), args: [[key], wait] },
      { name: 'Kv.has', call: bound(one, 'has'), args: [key, wait] },
      { name: 'Kv.set', call: bound(one, 'set'), args: [key, value, { ...wait, ttlMs: 1000 }] },
      { name: 'Kv.compareAndSet', call: bound(one, 'compareAndSet'), args: [key, 0, value, { ...wait, ttlMs: 1000 }] },
      { name: 'Kv.delete', call: bound(one, 'delete'), args: [key, wait] },
      { name: 'Kv.watch', call: bound(one, 'watch'), args: ['', wait] },
      { name: 'Kv.entries', call: bound(one, 'entries'), args: [{ prefix: '', ...wait }] },
    ]),
    { name: 'KvShards.ownerOf', call: bound(shards, 'ownerOf'), args: [key] },
    {
      name: 'servePrimitives',
      call: servePrimitives as Call,
      undo: close,
      args: [{ device, port: 0, host: HOST, words: 64, clientsMax: 4, isRestart: false, firstNumber: 1 }],
    },
    {
      name: 'openPrimitives',
      call: openPrimitives as Call,
      undo: close,
      args: [{ device, host: HOST, port: served.port, ...wait }],
    },
    { name: 'Primitives.counter', call: bound(primitives, 'counter'), args: ['c', wait] },
    { name: 'Primitives.sequencer', call: bound(primitives, 'sequencer'), args: ['s', wait] },
    { name: 'Primitives.lock', call: bound(primitives, 'lock'), args: ['l', { ...wait, leaseMs: 1000 }] },
    {
      name: 'Primitives.semaphore',
      call: bound(primitives, 'semaphore'),
      args: ['p', { ...wait, permits: 2, leaseMs: 1000 }],
    },
    { name: 'Primitives.barrier', call: bound(primitives, 'barrier'), args: ['b', { ...wait, parties: 2 }] },
    { name: 'PrimitivesOwner.ring', call: bound(served, 'ring'), args: ['r', { slots: 4, bytes: 64 }], undo: close },
    { name: 'Primitives.ring', call: bound(primitives, 'ring'), args: ['r', wait] },
    { name: 'RemoteCounter.add', call: bound(await primitives.counter('c'), 'add'), args: [1n, wait] },
    {
      name: 'RemoteCounter.compareAndSet',
      call: bound(await primitives.counter('c'), 'compareAndSet'),
      args: [0n, 1n, wait],
    },
    { name: 'RemoteSequencer.next', call: bound(await primitives.sequencer('s'), 'next'), args: [1, wait] },
    { name: 'RemoteCounter.get', call: bound(await primitives.counter('c'), 'get'), args: [wait] },
    { name: 'RemoteBarrier.wait', call: bound(await primitives.barrier('b', { parties: 2 }), 'wait'), args: [wait] },
    { name: 'RemoteLock.acquire', call: bound(lock, 'acquire'), args: [wait], undo: release },
    { name: 'RemoteLock.tryAcquire', call: bound(lock, 'tryAcquire'), args: [wait], undo: release },
    { name: 'RemoteLock.run', call: bound(lock, 'run'), args: [async () => {}, wait] },
    { name: 'Lease.release', call: async (...args: never[]) => (await lock.acquire()).release(...args), args: [wait] },
    { name: 'RemoteSemaphore.acquire', call: bound(semaphore, 'acquire'), args: [wait], undo: release },
    { name: 'RemoteSemaphore.run', call: bound(semaphore, 'run'), args: [async () => {}, wait] },
    { name: 'RingConsumer.next', call: bound(consumer, 'next'), args: [wait] },
    { name: 'RemoteRing.push', call: bound(await primitives.ring('own'), 'push'), args: [Buffer.from('x'), wait] },
    { name: 'rpcOverStream', call: rpcOverStream as Call, args: [new PassThrough()] },
    { name: 'connectRpc', call: connectRpc as Call, args: [carrier(), {}, { callsMax: 1, itemsMax: 1 }], undo: close },
    {
      name: 'serveRpc',
      call: serveRpc as Call,
      args: [carrier(), {}, {}, { callsMax: 1, itemsMax: 1, memoryBytesMax: 1 << 20 }],
      undo: close,
    },
    { name: 'defineService', call: defineService as Call, args: [{}] },
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
