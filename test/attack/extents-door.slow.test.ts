/** The TCP door of managers and nodes: strangers who say nothing, who say hello and stay, and who call, do not keep others out. */

import type { Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { DualListener } from '../../packages/extents/src/live/dual-listener.js';
import { tcpPortOf } from '../../packages/extents/src/live/peer-connector.js';
import { HELLO, writeFrame } from '../../packages/rpc/src/frame.js';
import {
  connectRpc,
  defineService,
  type RpcClient,
  rpcOverStream,
  type StandardSchema,
} from '../../packages/rpc/src/index.js';
import type { ConnectionLimits } from '../../src/core/connection-limiter.js';
import { openDevice } from '../../src/verbs/open-device.js';
import { eventually } from '../support/eventually.js';
import { crowd, hangUp, held, strangerConnects } from './toolkit/hostile-connections.js';

const HOST = '127.0.2.31';
const STRANGER = '127.0.2.32';
const FRIEND = '127.0.2.33';
/** As docs/security.md says. */
const SILENT_PER_ADDRESS = 64;
const SERVED_PER_ADDRESS = 128;
const CALL_MS = 5_000;

const any: StandardSchema = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } };
const service = defineService({ echo: { input: any, output: any } });

const closing: Array<() => unknown> = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const notices: string[] = [];

async function openDoor(limits?: ConnectionLimits): Promise<number> {
  const device = await openDevice({ address: HOST, udpPort: 0 });
  closing.push(() => device.close());
  const door = await DualListener.open(
    device,
    { host: HOST, port: 0 },
    { onNotice: (notice) => notices.push(notice), ...(limits && { limits }) },
  );
  closing.push(() => door.close());
  door.serve(service, { echo: async (value) => value as object });
  return tcpPortOf(door.port);
}

function helloFrame(): string {
  const hello = Buffer.alloc(32);
  writeFrame(hello, { kind: HELLO, a: 4, b: 4, length: 100 }); // All of it ASCII, as what is sent here is text.
  return hello.toString('latin1');
}

/** Says hello as a client does, which makes no call yet. */
async function client(port: number, from: string): Promise<{ rpc: RpcClient<typeof service>; socket: Socket }> {
  const socket = await strangerConnects({ host: HOST, port, from });
  const rpc = connectRpc(rpcOverStream(socket), service);
  closing.push(() => rpc.close());
  return { rpc, socket };
}

/** Connections that say this, and take what comes: so they see that they have been ended. */
async function strangers(count: number, port: number, text?: string): Promise<Socket[]> {
  const sockets = await crowd(count, { host: HOST, port, from: STRANGER, ...(text !== undefined && { text }) });
  for (const socket of sockets) socket.resume();
  closing.push(() => hangUp(sockets));
  return sockets;
}

async function echoes(port: number, from: string): Promise<unknown> {
  const { rpc } = await client(port, from);
  return rpc.methods.echo({ from }, { timeoutMs: CALL_MS });
}

describe('the TCP door of an extent service', () => {
  it('keeps few of those who say nothing, and none of them in the way of others', async () => {
    const port = await openDoor();
    const { rpc: early } = await client(port, FRIEND);
    await early.methods.echo(1, { timeoutMs: CALL_MS });
    const silent = await strangers(200, port);
    await eventually(() => held(silent) <= SILENT_PER_ADDRESS);
    const half = await strangers(100, port, helloFrame().slice(0, 31));
    await eventually(() => held(silent) + held(half) <= SILENT_PER_ADDRESS);
    expect(await echoes(port, FRIEND)).toEqual({ from: FRIEND });
    expect(await echoes(port, STRANGER)).toEqual({ from: STRANGER });
    expect(await early.methods.echo(2, { timeoutMs: CALL_MS })).toBe(2);
  });

  it('gives one address its share, of which those go first that have never called', async () => {
    const port = await openDoor();
    const { rpc: early } = await client(port, STRANGER);
    await early.methods.echo(1, { timeoutMs: CALL_MS });
    const idle: Socket[] = [];
    for (let k = 0; k < 4; k++) idle.push(...(await strangers(50, port, helloFrame())));
    await eventually(() => held(idle) < SERVED_PER_ADDRESS);
    expect(await echoes(port, STRANGER)).toEqual({ from: STRANGER });
    expect(await echoes(port, FRIEND)).toEqual({ from: FRIEND });
    expect(await early.methods.echo(2, { timeoutMs: CALL_MS })).toBe(2); // Who has called stays.
  });

  const callers = async (limits: ConnectionLimits) => {
    const port = await openDoor(limits);
    for (let k = 0; k < 4; k++) expect(await echoes(port, STRANGER)).toEqual({ from: STRANGER });
    return port;
  };

  it('lets others in where one address has its share of callers, and that address no more', async () => {
    const port = await callers({ total: 8, perAddress: 4 });
    notices.length = 0;
    for (let k = 0; k < 2; k++) {
      await expect(echoes(port, STRANGER)).rejects.toMatchObject({ code: expect.stringMatching(/CLOSED|IO/) });
    }
    expect(notices).toEqual([expect.stringMatching(/^a peer at 127\.\S+ was refused: no more .*only counted\)$/)]);
    expect(await echoes(port, FRIEND)).toEqual({ from: FRIEND });
  });

  it('would let nobody else in without shares', async () => {
    const port = await callers({ total: 4, perAddress: 4 });
    await expect(echoes(port, FRIEND)).rejects.toMatchObject({ code: expect.stringMatching(/CLOSED|IO/) });
  });
});
