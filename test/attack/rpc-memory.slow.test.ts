/**
 * What callers may keep of a server's memory, and of its time: half bodies, bodies byte by byte, JSON of many elements,
 * and outputs that they do not take. Honest callers are served at the same time.
 */

import { once } from 'node:events';
import { type AddressInfo, connect as connectTcp, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { serverMemory } from '../../packages/rpc/src/body-memory.js';
import { CALL, HEADER_BYTES, HELLO, NO_DEADLINE, writeFrame } from '../../packages/rpc/src/frame.js';
import {
  connectRpc,
  defineService,
  type RpcServer,
  rpcOverStream,
  type StandardSchema,
  serveRpc,
} from '../../packages/rpc/src/index.js';
import { encodeValue } from '../../packages/rpc/src/value.js';
import { connect, listen, openDevice } from '../../src/index.js';
import { eventually } from '../support/eventually.js';
import { crowd, hangUp, held } from './toolkit/hostile-connections.js';

const HOST = '127.0.8.231';
const ATTACKER = '127.0.8.232';
const HONEST = '127.0.8.233';
const MIB = 1 << 20;
/** As docs/security.md says. */
const TOTAL = 256 * MIB;
const OF_ADDRESS = 64 * MIB;
const SHARE = 64 << 10;
const ANSWER = 8 << 10;

const any: StandardSchema = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } };
const service = defineService({
  size: { input: any, output: any },
  zeros: { input: any, output: any },
  known: { input: any, output: any, outputBytesMax: (bytes: number) => bytes },
});

/** As a disk, it answers later. */
const zeros = async (bytes: unknown) => {
  await new Promise(setImmediate);
  made++;
  return Buffer.alloc(bytes as number);
};

let listener: Server;
let port: number;
/** Outputs of `zeros` and `known` that were made. */
let made = 0;
const servers: RpcServer[] = [];
const closing: Array<() => unknown> = [];
beforeEach(async () => {
  listener = createServer((socket) => {
    const size = (value: unknown) => (value instanceof Uint8Array ? value.length : 1);
    servers.push(serveRpc(rpcOverStream(socket), service, { size, zeros, known: zeros }));
  }).listen(0, HOST);
  await once(listener, 'listening');
  ({ port } = listener.address() as AddressInfo);
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  for (const server of servers.splice(0)) await server.close();
  listener.close();
  // Whatever has happened, all memory is free again.
  const { bodies, answers } = serverMemory(undefined);
  await eventually(() => bodies.heldBytes === 0 && answers.heldBytes === 0);
  made = 0;
});

async function caller(from: string) {
  const socket = connectTcp({ host: HOST, port, localAddress: from });
  await once(socket, 'connect');
  const rpc = connectRpc(rpcOverStream(socket), service);
  closing.push(() => rpc.close());
  return rpc.methods;
}

/** HELLO, and calls of a method for outputs of 1 MiB. */
function callsFor(method: string, count: number): Buffer {
  const [head, json] = encodeValue(MIB);
  const body = Buffer.concat([Buffer.of(method.length), Buffer.from(method), head, json]);
  const frames = Array.from({ length: count }, (_, call) => {
    const frame = Buffer.alloc(HEADER_BYTES);
    writeFrame(frame, { kind: CALL, call: call + 1, a: NO_DEADLINE, length: body.length });
    return Buffer.concat([frame, body]);
  });
  const hello = Buffer.alloc(HEADER_BYTES);
  writeFrame(hello, { kind: HELLO, a: 64, b: 16, length: 16 * MIB });
  return Buffer.concat([hello, ...frames]);
}

/** HELLO, and the beginning of a call whose body is 16 MiB. */
function beginning(): Buffer {
  const frames = Buffer.alloc(64);
  writeFrame(frames, { kind: HELLO, a: 64, b: 16, length: 16 * MIB });
  writeFrame(frames.subarray(32), { kind: CALL, call: 1, a: NO_DEADLINE, length: 16 * MIB });
  return frames;
}

async function attackers(count: number, from: string, body: Buffer): Promise<Socket[]> {
  const sockets = await crowd(count, { host: HOST, port, from });
  for (const socket of sockets) {
    socket.resume();
    socket.write(beginning());
    socket.write(body);
  }
  closing.push(() => hangUp(sockets));
  return sockets;
}

describe('callers that send a part of a body and no more', () => {
  it.each([
    ['nothing of it', 0],
    ['all but the last byte', 16 * MIB - 1],
  ])('%s: they hold the share of their address, and other callers are served', async (_, bytes) => {
    const early = await caller(HONEST);
    const stuck = await attackers(6, ATTACKER, Buffer.alloc(bytes));
    await eventually(() => serverMemory(undefined).bodies.heldBytes > OF_ADDRESS / 2);
    const late = await caller(HONEST);
    const body = Buffer.alloc(8 * MIB);
    for (const methods of [early, late, early, late]) {
      expect(await methods.size(body, { timeoutMs: 30_000 })).toBe(body.length);
      expect(await methods.size(1, { timeoutMs: 30_000 })).toBe(1);
      expect(serverMemory(undefined).bodies.heldBytes).toBeLessThan(2 * OF_ADDRESS + 64 * SHARE);
    }
    await eventually(() => held(stuck) === 0, { limitMs: 55_000, everyMs: 100 });
    expect(await late.size(body, { timeoutMs: 30_000 })).toBe(body.length);
  });

  it('from many addresses hold no more than there is, and a small call never waits', async () => {
    for (let k = 0; k < 8; k++) await attackers(10, `127.0.9.${k + 1}`, Buffer.alloc(0));
    await eventually(() => serverMemory(undefined).bodies.heldBytes > TOTAL / 2);
    const methods = await caller(HONEST);
    for (let k = 0; k < 20; k++) expect(await methods.size(k, { timeoutMs: 30_000 })).toBe(1);
    expect(serverMemory(undefined).bodies.heldBytes).toBeLessThanOrEqual(TOTAL + 100 * SHARE);
  });

  it('byte by byte, end as well', async () => {
    const [socket] = await attackers(1, ATTACKER, Buffer.alloc(0));
    const trickle = setInterval(() => socket.write('x'), 100); // timer: the attack
    closing.push(() => clearInterval(trickle));
    await eventually(() => held([socket]) === 0, { limitMs: 55_000, everyMs: 100 });
    expect(servers[0].connections).toBe(0);
  });
});

describe('JSON of many elements', () => {
  it.each(['{},', '[],', '0,', '"",', '{"a":0},'])('%s is refused before it is parsed', async (unit) => {
    const honest = await caller(HONEST);
    const [socket] = await crowd(1, { host: HOST, port, from: ATTACKER });
    closing.push(() => socket.destroy());
    const json = Buffer.from(`[${unit.repeat(Math.floor((12 * MIB) / unit.length))}0]`);
    const call = Buffer.alloc(64 + 5 + 8);
    writeFrame(call, { kind: HELLO, a: 64, b: 16, length: 16 * MIB });
    const length = 5 + 8 + json.length;
    writeFrame(call.subarray(32), { kind: CALL, call: 1, a: NO_DEADLINE, length });
    call.write('\x04size', 64, 'latin1');
    call.writeUInt32LE(json.length, 69);
    const parse = vi.spyOn(JSON, 'parse');
    socket.write(call);
    socket.write(json);
    await once(socket, 'data'); // HELLO
    expect(await honest.size(1, { timeoutMs: 30_000 })).toBe(1);
    await eventually(() => servers[1].counters().failed === 1);
    const longest = Math.max(...parse.mock.calls.map(([text]) => String(text).length));
    parse.mockRestore();
    expect(longest).toBeLessThan(1000);
    expect(await honest.size(2, { timeoutMs: 30_000 })).toBe(1);
  });

  it('is refused with the limit; text that looks like it is not', async () => {
    const methods = await caller(HONEST);
    const value = Array(70_000).fill(0);
    await expect(methods.size(value)).rejects.toMatchObject({
      remoteCode: 'TOO_LARGE',
      message: expect.stringContaining('more than 65536 elements'),
    });
    expect(await methods.size(Array(60_000).fill('a,b,[{'))).toBe(1);
  });
});

describe('callers that take no outputs', () => {
  const CALLS = 64;
  const isFull = () => serverMemory(undefined).answers.heldBytes > OF_ADDRESS - 2 * MIB;

  it.each(['known', 'zeros'])('hold what their address may have; others are served (%s)', async (method) => {
    const early = await caller(HONEST);
    const silent = await crowd(8, { host: HOST, port, from: ATTACKER });
    closing.push(() => hangUp(silent));
    for (const socket of silent) socket.write(callsFor(method, CALLS));
    await eventually(isFull);
    const late = await caller(HONEST);
    for (const methods of [early, late, early]) {
      const output = (await methods.known(4 * MIB, { timeoutMs: 30_000 })) as Uint8Array;
      expect(output.length).toBe(4 * MIB);
      expect(serverMemory(undefined).answers.heldBytes).toBeLessThan(OF_ADDRESS + 9 * ANSWER);
    }
    expect(servers[0].heldBytes.outputs).toBeGreaterThan(OF_ADDRESS - 2 * MIB);
    // Those that the kernel has taken, and those in memory; without a bound, calls that ran already have made more.
    if (method === 'known') expect(made).toBeLessThan(OF_ADDRESS / MIB + 5 * silent.length);
    // One of the same address waits until they are ended.
    const neighbour = await caller(ATTACKER);
    expect(await neighbour.zeros(MIB, { timeoutMs: 30_000 })).toHaveLength(MIB);
    await eventually(() => servers.some(({ connections }) => connections === 0));
  });

  it('nor read them from the memory of the server', async () => {
    const [device, hostile] = [
      await openDevice({ address: HOST, udpPort: 0 }),
      await openDevice({ address: ATTACKER, udpPort: 0 }),
    ];
    closing.push(
      () => device.close(),
      () => hostile.close(),
    );
    const connections = await listen(device, { port: 0 });
    servers.push(serveRpc(connections, service, { size: () => 0, zeros, known: zeros }));
    const target = { host: HOST, port: connections.port };
    for (let k = 0; k < 3; k++) {
      const connection = await connect(hostile, target);
      const bytes = callsFor('known', CALLS);
      const step = (bytes.length - HEADER_BYTES) / CALLS;
      await connection.send(bytes.subarray(0, HEADER_BYTES));
      for (let at = HEADER_BYTES; at < bytes.length; at += step) {
        connection.send(bytes.subarray(at, at + step)).catch(() => {}); // It is ended later.
      }
    }
    await eventually(isFull);
    const honest = await openDevice({ address: HONEST, udpPort: 0 });
    closing.push(() => honest.close());
    const { methods } = connectRpc(await connect(honest, target), service);
    for (let k = 0; k < 3; k++) expect(await methods.known(MIB, { timeoutMs: 30_000 })).toHaveLength(MIB);
    expect(made).toBeLessThan(OF_ADDRESS / MIB + 10);
    expect(serverMemory(undefined).answers.heldBytes).toBeLessThan(OF_ADDRESS + 2 * MIB);
  });
});
