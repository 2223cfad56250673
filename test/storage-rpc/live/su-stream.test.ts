/** Streams that outlive their connections, on real sockets: as Node streams, and as what RPC runs on, through failures of RDMA. */

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { connectRpc, defineService, rpcOverStream, serveRpc } from '../../../packages/rpc/src/index.js';
import { SuDuplex } from '../../../src/storage-rpc/live/su-duplex.js';
import { SuEndpoint } from '../../../src/storage-rpc/live/su-endpoint.js';
import { SuStreamClient } from '../../../src/storage-rpc/live/su-stream-client.js';
import { SuStreamServer } from '../../../src/storage-rpc/live/su-stream-server.js';
import { openDevice } from '../../../src/verbs/open-device.js';
import { eventually } from '../../support/eventually.js';

const HOST = '127.55.0.3';
const closers: Array<() => Promise<void>> = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function endpoint(): Promise<SuEndpoint> {
  const device = await openDevice({ address: HOST, udpPort: 0 });
  closers.push(() => device.close());
  const made = await SuEndpoint.open(device);
  closers.push(() => made.close());
  return made;
}

async function rig(withRdma = true) {
  const accepted: SuDuplex[] = [];
  const events: string[] = [];
  const rdma = async () => (withRdma ? { endpoint: await endpoint() } : {});
  const server = await SuStreamServer.open({
    host: HOST,
    port: 0,
    onStream: (stream) => accepted.push(new SuDuplex(stream)),
    ...(await rdma()),
  });
  closers.push(() => server.close());
  const client = SuStreamClient.to({
    host: HOST,
    port: server.port,
    path: { holdDownNs: 50e6 },
    onEvent: ({ type }) => events.push(type),
    ...(await rdma()),
  });
  closers.push(() => client.close());
  const duplex = new SuDuplex(await client.stream());
  const [peer] = accepted;
  return { server, client, duplex, peer, events };
}

test.each([true, false])('a stream of Node moves between RDMA and TCP under its data (RDMA: %s)', async (withRdma) => {
  const { server, client, duplex, peer, events } = await rig(withRdma);
  expect(client.transports).toEqual(withRdma ? { rdma: 1, tcp: 0 } : { rdma: 0, tcp: 1 });
  const [sent, got, echoed] = [createHash('sha256'), createHash('sha256'), createHash('sha256')];
  const echo = (async () => {
    for await (const chunk of peer.iterator({ destroyOnReturn: false })) {
      got.update(chunk as Buffer);
      if (!peer.write(chunk)) await once(peer, 'drain');
    }
    peer.end();
  })();
  const back = (async () => {
    for await (const chunk of duplex.iterator({ destroyOnReturn: false })) echoed.update(chunk as Buffer);
  })();
  for (let i = 0; i < 150; i++) {
    if (i % 50 === 10) client.failover();
    const piece = Buffer.alloc(1 + ((i * 7919) % 100_000), i);
    sent.update(piece);
    if (!duplex.write(piece)) await once(duplex, 'drain');
  }
  duplex.end();
  await Promise.all([echo, back, finished(duplex)]);
  const digest = sent.digest('hex');
  expect([got.digest('hex'), echoed.digest('hex')]).toEqual([digest, digest]);
  if (withRdma) expect(events[0]).toBe('failover');
  await eventually(() => client.transports.rdma + client.transports.tcp === 0);
  expect(server.streams).toBe(1); // Its client might not have heard of the end.
});

test('calls with schemas and streaming answers over it, through a failover', async () => {
  const { client, duplex, peer, events } = await rig();
  const service = defineService({
    add: { input: z.object({ a: z.number(), b: z.number() }), output: z.number() },
    count: { input: z.number(), output: z.number(), stream: 'output' },
  });
  const served = serveRpc(rpcOverStream(peer), service, {
    add: ({ a, b }) => a + b,
    async *count(to) {
      for (let n = 0; n < to; n++) yield n;
    },
  });
  const { methods, close } = connectRpc(rpcOverStream(duplex), service);
  const got: number[] = [];
  for await (const n of methods.count(2000)) {
    got.push(n);
    if (n === 500) client.failover();
  }
  expect(got).toEqual([...Array(2000).keys()]);
  expect(await methods.add({ a: 2, b: 3 }, { timeoutMs: 10_000 })).toBe(5);
  await eventually(() => events.includes('return'));
  expect([events, client.state]).toEqual([['failover', 'return'], 'RDMA']);
  await close();
  await served.close();
});

test('a server that goes away for good ends the streams of a client that gives up', async () => {
  const accepted: SuDuplex[] = [];
  const server = await SuStreamServer.open({
    host: HOST,
    port: 0,
    onStream: (stream) => accepted.push(new SuDuplex(stream)),
  });
  const client = SuStreamClient.to({ host: HOST, port: server.port, giveUpNs: 1e8 });
  closers.push(() => client.close());
  const duplex = new SuDuplex(await client.stream());
  accepted[0].on('error', () => {});
  const failed = once(duplex, 'error');
  await server.close();
  const [error] = (await failed) as [Error];
  expect(error).toMatchObject({ code: expect.stringMatching(/^ERR_ROCE_/) });
  await expect(client.stream()).rejects.toMatchObject({ code: 'ERR_ROCE_CONNECT' });
  expect(() => SuStreamClient.to({ host: HOST, port: 1, windowBytes: 5 })).toThrow(/windowBytes/);
});
