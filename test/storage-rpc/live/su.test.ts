/** sU-RDMA on real sockets: as a Node stream, and as what RPC runs on. */

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectTcp, createServer, type Socket } from 'node:net';
import { type Duplex, PassThrough, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { afterEach, expect, test } from 'vitest';
import { RpcPeer } from '../../../src/storage-rpc/live/rpc-peer.js';
import { SuDuplex } from '../../../src/storage-rpc/live/su-duplex.js';
import { SuEndpoint } from '../../../src/storage-rpc/live/su-endpoint.js';
import { openDevice } from '../../../src/verbs/open-device.js';

const HOST = '127.55.0.2';
const closers: Array<() => Promise<void>> = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Both ends of a connection over sU-RDMA. */
async function suPair(): Promise<[Duplex, Duplex]> {
  const endpoints: SuEndpoint[] = [];
  for (let i = 0; i < 2; i++) {
    const device = await openDevice({ address: HOST, udpPort: 0 });
    closers.push(() => device.close());
    const endpoint = await SuEndpoint.open(device);
    closers.push(() => endpoint.close());
    endpoints.push(endpoint);
  }
  const [server, client] = endpoints;
  let onConnection: (duplex: SuDuplex) => void = () => {};
  const accepted = new Promise<SuDuplex>((resolve) => {
    onConnection = resolve;
  });
  const port = await server.listen(HOST, 0, (connection) => onConnection(new SuDuplex(connection)));
  const connected = new SuDuplex(await client.connect(HOST, port));
  return [connected, await accepted];
}

async function tcpPair(): Promise<[Duplex, Duplex]> {
  const server = createServer().listen({ host: HOST, port: 0 });
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const client = connectTcp({ host: HOST, port });
  const [accepted] = (await once(server, 'connection')) as [Socket];
  closers.push(async () => {
    client.destroy();
    accepted.destroy();
    server.close();
  });
  return [client, accepted];
}

function randomPieces(count: number): Buffer[] {
  return Array.from({ length: count }, (_, i) => Buffer.alloc(1 + ((i * 7919) % 150_000), i));
}

test('existing code can pipe through it, with what comes back compared', async () => {
  const [client, server] = await suPair();
  const pieces = randomPieces(100);
  const sent = createHash('sha256');
  const got = createHash('sha256');
  for (const piece of pieces) sent.update(piece);
  const echo = pipeline(server, new PassThrough(), server);
  const back = (async () => {
    for await (const chunk of client) got.update(chunk as Buffer);
  })();
  for await (const piece of Readable.from(pieces)) if (!client.write(piece)) await once(client, 'drain');
  client.end();
  await Promise.all([echo, back]);
  expect(got.digest('hex')).toBe(sent.digest('hex'));
});

test('a reader that does not read holds its writer up', async () => {
  const [client, server] = await suPair();
  let sent = 0;
  const finished = once(client, 'finish');
  const writer = (async () => {
    for (let i = 0; i < 200; i++) {
      if (!client.write(Buffer.alloc(65_536, i))) await once(client, 'drain');
      sent++;
    }
    client.end();
  })();
  // Held up is who gets no further while ten messages come the other way: each is more than a round trip, with turns for everybody.
  for (let before = -1, without = 0; without < 10; before = sent) {
    server.write('x');
    await once(client, 'data');
    without = sent === before ? without + 1 : 0;
  }
  expect(sent).toBeLessThan(100);
  let received = 0;
  for await (const chunk of server) received += (chunk as Buffer).length;
  await writer;
  await finished;
  expect(received).toBe(200 * 65_536);
});

test('a peer that goes away ends the stream with an error', async () => {
  const [client, server] = await suPair();
  server.on('error', () => {});
  const failed = once(client, 'error');
  client.resume();
  server.destroy();
  const [error] = (await failed) as [Error];
  expect(error.message).toMatch(/peer closed|gone|gave up/);
});

for (const [name, pair] of [
  ['sU-RDMA', suPair],
  ['TCP', tcpPair],
] as const) {
  test(`calls over ${name}: answers, errors, deadlines`, async () => {
    const [client, server] = await pair();
    let running = 0;
    let runningMax = 0;
    let release: () => void = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const handler = async (request: Buffer) => {
      runningMax = Math.max(runningMax, ++running);
      await (request.toString() === 'slow' ? released : new Promise(setImmediate));
      running--;
      if (request.toString() === 'fail') throw new Error('it does not work');
      return Buffer.concat([Buffer.from('got '), request]);
    };
    new RpcPeer(server, { handler, concurrency: 8 });
    const peer = new RpcPeer(client);
    const requests = Array.from({ length: 100 }, (_, i) => Buffer.alloc(1 + i * 1000, 65 + (i % 26)));
    const answers = await Promise.all(requests.map((request) => peer.call(request)));
    answers.forEach((answer, i) => void expect(answer.subarray(4).equals(requests[i])).toBe(true));
    expect(runningMax).toBeLessThanOrEqual(8);
    await expect(peer.call(Buffer.from('fail'))).rejects.toMatchObject({ message: 'it does not work' });
    await expect(peer.call(Buffer.from('slow'), 50)).rejects.toMatchObject({ code: 'ERR_ROCE_TIMEOUT' });
    release(); // Its answer comes too late, and must not be taken for the next.
    expect((await peer.call(Buffer.from('after'))).toString()).toBe('got after');
    await expect(new RpcPeer(server).call(Buffer.alloc((16 << 20) + 1))).rejects.toThrow('too long');
  });
}
