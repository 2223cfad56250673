/**
 * What callers may keep of a server's memory, and of its time: half bodies, bodies byte by byte, and JSON of many
 * elements. Honest callers are served at the same time.
 */

import { once } from 'node:events';
import { type AddressInfo, connect as connectTcp, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { bodyMemory } from '../../packages/rpc/src/body-memory.js';
import { CALL, HELLO, NO_DEADLINE, writeFrame } from '../../packages/rpc/src/frame.js';
import {
  connectRpc,
  defineService,
  type RpcServer,
  rpcOverStream,
  type StandardSchema,
  serveRpc,
} from '../../packages/rpc/src/index.js';
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

const any: StandardSchema = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } };
const service = defineService({ size: { input: any, output: any } });

let listener: Server;
let port: number;
const servers: RpcServer[] = [];
const closing: Array<() => unknown> = [];
beforeEach(async () => {
  listener = createServer((socket) => {
    const size = (value: unknown) => (value instanceof Uint8Array ? value.length : 1);
    servers.push(serveRpc(rpcOverStream(socket), service, { size }));
  }).listen(0, HOST);
  await once(listener, 'listening');
  ({ port } = listener.address() as AddressInfo);
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  for (const server of servers.splice(0)) await server.close();
  listener.close();
  await eventually(() => bodyMemory(undefined).heldBytes === 0); // Whatever has happened, all memory is free again.
});

async function caller(from: string) {
  const socket = connectTcp({ host: HOST, port, localAddress: from });
  await once(socket, 'connect');
  const rpc = connectRpc(rpcOverStream(socket), service);
  closing.push(() => rpc.close());
  return rpc.methods;
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
    await eventually(() => bodyMemory(undefined).heldBytes > OF_ADDRESS / 2);
    const late = await caller(HONEST);
    const body = Buffer.alloc(8 * MIB);
    for (const methods of [early, late, early, late]) {
      expect(await methods.size(body, { timeoutMs: 30_000 })).toBe(body.length);
      expect(await methods.size(1, { timeoutMs: 30_000 })).toBe(1);
      expect(bodyMemory(undefined).heldBytes).toBeLessThan(2 * OF_ADDRESS + 64 * SHARE);
    }
    await eventually(() => held(stuck) === 0, { limitMs: 55_000, everyMs: 100 });
    expect(await late.size(body, { timeoutMs: 30_000 })).toBe(body.length);
  });

  it('from many addresses hold no more than there is, and a small call never waits', async () => {
    for (let k = 0; k < 8; k++) await attackers(10, `127.0.9.${k + 1}`, Buffer.alloc(0));
    await eventually(() => bodyMemory(undefined).heldBytes > TOTAL / 2);
    const methods = await caller(HONEST);
    for (let k = 0; k < 20; k++) expect(await methods.size(k, { timeoutMs: 30_000 })).toBe(1);
    expect(bodyMemory(undefined).heldBytes).toBeLessThanOrEqual(TOTAL + 100 * SHARE);
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
