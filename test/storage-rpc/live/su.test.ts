/** sU-RDMA on real sockets: as a Node stream, and as what RPC runs on. */

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type Duplex, PassThrough, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { connectRpc, defineService, RpcError, rpcOverStream, serveRpc } from '../../../packages/rpc/src/index.js';
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

test('calls over it: answers, errors, deadlines', async () => {
  const [client, server] = await suPair();
  const bytes = z.custom<Uint8Array>((value) => value instanceof Uint8Array);
  const service = defineService({ ask: { input: bytes, output: bytes } });
  let running = 0;
  let runningMax = 0;
  let release: () => void = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const ask = async (request: Uint8Array) => {
    const text = Buffer.from(request).toString();
    runningMax = Math.max(runningMax, ++running);
    await (text === 'slow' ? released : new Promise(setImmediate));
    running--;
    if (text === 'fail') throw new RpcError('io', 'it does not work');
    return Buffer.concat([Buffer.from('got '), request]);
  };
  serveRpc(rpcOverStream(server), service, { ask }, { callsMax: 8 });
  const { methods } = connectRpc(rpcOverStream(client), service);
  const requests = Array.from({ length: 100 }, (_, i) => Buffer.alloc(1 + i * 1000, 65 + (i % 26)));
  const answers = await Promise.all(requests.map((request) => methods.ask(request)));
  answers.forEach((answer, i) => void expect(Buffer.from(answer.subarray(4)).equals(requests[i])).toBe(true));
  expect(runningMax).toBeLessThanOrEqual(8);
  await expect(methods.ask(Buffer.from('fail'))).rejects.toMatchObject({ message: 'it does not work' });
  await expect(methods.ask(Buffer.from('slow'), { timeoutMs: 50 })).rejects.toMatchObject({ code: 'ERR_ROCE_TIMEOUT' });
  release(); // Its answer comes too late, and must not be taken for the next.
  expect(Buffer.from(await methods.ask(Buffer.from('after'))).toString()).toBe('got after');
});
