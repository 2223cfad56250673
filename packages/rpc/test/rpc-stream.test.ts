/** RPC over byte streams: what a connection need not be, and what such a stream may do wrong. */

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { Duplex, PassThrough } from 'node:stream';
import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { eventually } from '../../../test/support/eventually.js';
import { connectRpc, defineService, type RpcLimits, rpcOverStream, serveRpc } from '../src/index.js';
import { connectionPairs } from './pair.js';

const bytes = z.custom<Uint8Array>((value) => value instanceof Uint8Array);
const service = defineService({
  echo: { input: bytes, output: bytes },
  count: { input: z.number(), output: z.number(), stream: 'output' },
  wait: { input: z.null(), output: z.null() },
});

const open: Array<() => Promise<unknown>> = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/** Two ends of one TCP connection on loopback. */
async function sockets(): Promise<{ server: Socket; client: Socket }> {
  const listener = createServer();
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const client = connect((listener.address() as AddressInfo).port, '127.0.0.1');
  const [[server]] = (await Promise.all([once(listener, 'connection'), once(client, 'connect')])) as [
    [Socket],
    unknown,
  ];
  listener.close();
  return { server, client };
}

const pairOverRdma = connectionPairs({ address: '127.0.2.6' });

/** Two ends in memory that pass on a byte at a time. */
function slowly(): { server: Duplex; client: Duplex } {
  const ends: Duplex[] = [1, 0].map(
    (other) =>
      new Duplex({
        read() {},
        write: (chunk: Buffer, _, done) => {
          for (const byte of chunk) ends[other].push(Buffer.of(byte));
          done();
        },
        final: (done) => {
          ends[other].push(null);
          done();
        },
      }),
  );
  return { server: ends[0], client: ends[1] };
}

const CARRIERS: ReadonlyArray<readonly [string, () => Promise<{ server: Duplex; client: Duplex }>, number]> = [
  ['a TCP socket', sockets, 3_000_000],
  [
    'the stream of a connection',
    async () => {
      const { server, client } = await pairOverRdma();
      return { server: server.stream(), client: client.stream() };
    },
    3_000_000,
  ],
  ['a stream that passes on a byte at a time', async () => slowly(), 300],
];

function rig({ server, client }: { server: Duplex; client: Duplex }, limits: RpcLimits = {}) {
  const aborted: string[] = [];
  const served = serveRpc(
    rpcOverStream(server),
    service,
    {
      echo: (data) => data,
      async *count(to) {
        for (let n = 0; n < to; n++) yield n;
      },
      wait: (_, { signal }) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => {
            aborted.push(String(signal.reason));
            resolve(null);
          });
        }),
    },
    limits,
  );
  const caller = connectRpc(rpcOverStream(client), service);
  open.push(
    () => served.close(),
    () => caller.close(),
  );
  return { served, caller, methods: caller.methods, aborted };
}

test.each(CARRIERS)('calls, streams, deadlines and large values over %s', async (_, pair, bytesMax) => {
  const { methods, caller, served, aborted } = rig(await pair());
  for (const length of [0, 100, bytesMax]) {
    const data = Buffer.alloc(length, length & 255);
    expect(data.equals(await methods.echo(data))).toBe(true);
  }
  const got: number[] = [];
  for await (const n of methods.count(50)) got.push(n);
  expect(got).toEqual([...Array(50).keys()]);
  for await (const n of methods.count(1_000_000)) if (n === 20) break;
  await expect(methods.wait(null, { timeoutMs: 20 })).rejects.toMatchObject({ code: 'ERR_ROCE_TIMEOUT' });
  await eventually(() => caller.openCalls === 0 && aborted.length === 1);
  expect(served.counters()).toMatchObject({ done: 4, refused_peers: 0 });
});

test('the end of the stream ends the calls on both sides', async () => {
  const { server, client } = await sockets();
  const { methods, served, aborted } = rig({ server, client });
  const call = methods.wait(null).catch((error: unknown) => error);
  await eventually(() => served.counters().calls === 1);
  client.destroy();
  expect(await call).toMatchObject({ code: expect.stringMatching(/^ERR_ROCE_(CLOSED|IO)$/) });
  await eventually(() => served.connections === 0 && aborted.length === 1);
  await eventually(() => server.destroyed);
});

test('an answer that was given leaves before the server closes', async () => {
  const { served, methods } = rig(await sockets());
  const data = Buffer.alloc(1_000_000, 7);
  const echoed = methods.echo(data);
  await eventually(() => served.counters().done === 1);
  await served.close();
  expect(data.equals(await echoed)).toBe(true);
});

test('a stranger is refused at its first bytes; a body that is too long before it is read', async () => {
  const { server, client } = await sockets();
  const served = serveRpc(rpcOverStream(server), service, { echo: (d) => d, count: () => [], wait: () => null });
  client.on('error', () => {});
  client.write('GET / HTTP/1.1\r\nHost: example.org\r\n\r\n');
  await eventually(() => served.connections === 0);
  expect(served.counters().refused_peers).toBe(1);

  const small = rig(await sockets(), { valueBytesMax: 1000 });
  await expect(small.methods.echo(Buffer.alloc(2000))).rejects.toMatchObject({ code: 'ERR_ROCE_LIMIT' });
  const raw = await sockets();
  const limited = rig({ server: raw.server, client: new PassThrough() }, { valueBytesMax: 1000 });
  const frame = Buffer.alloc(64);
  frame.set([1, 1]);
  for (const [at, value] of [
    [8, 4],
    [12, 4],
    [16, 1000],
  ])
    frame.writeUInt32LE(value, at);
  frame.set([2, 1], 32);
  frame.writeUInt32LE(0x7fff_ffff, 48);
  raw.client.on('error', () => {});
  raw.client.write(frame);
  await eventually(() => limited.served.counters().refused_peers === 1);
});

test('a stream of objects or text is refused, and one that has an RPC already', async () => {
  expect(() => rpcOverStream(new PassThrough({ objectMode: true }))).toThrow(/stream of bytes/);
  expect(() => rpcOverStream(new PassThrough().setEncoding('utf8'))).toThrow(/stream of bytes/);
  const { client } = await sockets();
  const carrier = rpcOverStream(client);
  const first = connectRpc(carrier, service);
  expect(() => connectRpc(carrier, service)).toThrow(expect.objectContaining({ code: 'ERR_ROCE_BUSY' }));
  await first.close();
});
