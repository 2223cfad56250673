/** The TCP port of a storage server: strangers hold no more than their share of it, and no queue pair; sessions go on over both transports. */

import type { Socket } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openDevice, type RdmaDevice } from '../../src/index.js';
import { MemoryDevice } from '../../src/storage-rpc/disk/memory-device.js';
import { StorageClient } from '../../src/storage-rpc/live/storage-client.js';
import { StorageServer } from '../../src/storage-rpc/live/storage-server.js';
import { eventually } from '../support/eventually.js';
import { timeConnects } from './toolkit/honest-peers.js';
import { crowd, hangUp, held, helloOf } from './toolkit/hostile-connections.js';

const HOST = '127.0.8.221';
const HONEST = '127.0.8.222';
const STRANGER = '127.0.8.223';
const PER_ADDRESS = 256;
/** Queue pairs of peers that have not resumed a session, as docs/security.md says. */
const SET_UPS = 128;
const SET_UPS_PER_ADDRESS = 32;

let server: StorageServer;
let client: StorageClient;
let devices: RdmaDevice[];
let strangers: Socket[] = [];

beforeEach(async () => {
  devices = [await openDevice({ address: HOST, udpPort: 0 }), await openDevice({ address: HONEST, udpPort: 0 })];
  server = await StorageServer.open({ disks: [new MemoryDevice(1 << 20)], host: HOST, port: 0, device: devices[0] });
  client = await StorageClient.connect({ host: HOST, port: server.port, access: 'shared', device: devices[1] });
});
afterEach(async () => {
  hangUp(strangers);
  strangers = [];
  await client.close();
  await server.close();
  for (const device of devices) await device.close();
});

/** Writes and reads back. */
async function use({ disk }: StorageClient, fill: number): Promise<void> {
  const data = Buffer.alloc(65_536, fill);
  const back = Buffer.alloc(data.length);
  await disk.write(0, data);
  await disk.read(0, back.length, back);
  expect(back.equals(data)).toBe(true);
}

async function comeAndGo(device: RdmaDevice | undefined, fill: number): Promise<void> {
  const comer = await StorageClient.connect({
    host: HOST,
    port: server.port,
    access: 'shared',
    ...(device !== undefined && { device }),
  });
  await use(comer, fill);
  await comer.close();
}

it.each([
  ['say nothing', undefined],
  ['say one byte, and no more', 'x'],
  ['begin an exchange, and say no more', '{'],
  ['send what no client sends', 'GET / HTTP/1.1\r\n\r\n'.repeat(40)],
  ['nest an exchange 10,000 deep', `{"purpose": ${'['.repeat(10_000)}`],
])('strangers on 600 connections %s', async (_, text) => {
  await use(client, 1);
  const target = { host: HOST, port: server.port, from: STRANGER };
  strangers = await crowd(600, { ...target, ...(text !== undefined && { text }) });
  await use(client, 2);
  const times = await timeConnects(6, (turn) => comeAndGo(turn % 2 === 0 ? devices[1] : undefined, turn));
  expect(times).toMatchObject({ success: 1, failures: [] });
  await eventually(() => held(strangers) <= PER_ADDRESS);
  // No queue pair was made for them.
  await eventually(() => server.transports.rdma === 1);
  await use(client, 3);
  expect(client.report).toMatchObject({ failovers: 0, resentRequests: 0 });
});

it('a hello for another service is refused by name, and leaves nothing behind', async () => {
  const target = { host: HOST, port: server.port, from: STRANGER };
  const told = new Promise<string>((resolve) => {
    void crowd(1, { ...target, text: helloOf(STRANGER, { purpose: { service: 'other' } }) }).then((sockets) => {
      strangers = sockets;
      sockets[0].once('data', (text) => resolve(String(text)));
    });
  });
  expect(JSON.parse(await told)).toMatchObject({ refused: expect.stringContaining('sk-rdma') });
  await eventually(() => held(strangers) === 0 && server.transports.rdma === 1);
  await use(client, 4);
});

it('peers that complete the exchange and resume no session have few queue pairs, and leave none behind', async () => {
  const said = (from: string) => `${helloOf(from, { purpose: { service: 'sk-rdma' } })}{"barrier":"connected"}\n`;
  for (const from of [STRANGER, '127.0.8.224', '127.0.8.225', '127.0.8.226', '127.0.8.227']) {
    strangers.push(...(await crowd(200, { host: HOST, port: server.port, from, text: said(from) })));
  }
  await eventually(() => server.transports.rdma > SET_UPS_PER_ADDRESS); // They are peers as the server knows them.
  let most = 0;
  const times = await timeConnects(6, async (turn) => {
    await comeAndGo(devices[1], turn);
    most = Math.max(most, server.transports.rdma);
  });
  expect(times).toMatchObject({ success: 1, failures: [] });
  expect(most).toBeLessThanOrEqual(2 + SET_UPS);
  await use(client, 5);
  hangUp(strangers);
  await eventually(() => server.transports.rdma === 1);
});
