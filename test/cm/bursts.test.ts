/** More clients than a listener has room for: each is served in the end, or learns that there is no room. */

import { expect, it } from 'vitest';
import { type Connection, connect, type Listener, listen } from '../../src/index.js';
import { devicesAt } from '../support/devices.js';

const SERVER = '127.41.3.1';
const server = devicesAt(SERVER);
const client = devicesAt('127.41.3.2');
const SMALL = { messageBytesMax: 64, receiveDepth: 4 };

/** Answers the first message of each connection. */
async function serve(listener: Listener, onConnection: () => void = () => {}): Promise<void> {
  for await (const connection of listener) {
    onConnection();
    void connection
      .receive()
      .then(({ data }) => connection.send(data))
      .catch(() => {});
  }
}

it('clients that find no room try again: twenty at once are served by a listener for four', async () => {
  const listener = await listen(await server(), { port: 0, maxConnectionsPerAddress: 4, ...SMALL });
  let established = 0;
  void serve(listener, () => established++);
  const device = await client();
  const call = async (i: number) => {
    const connection = await connect(device, { host: SERVER, port: listener.port, ...SMALL, busyTimeoutMs: 30_000 });
    await connection.send(Buffer.from([i]));
    const { data } = await connection.receive();
    await connection.close();
    return data[0];
  };
  const calls = Array.from({ length: 20 }, (_, i) => call(i));
  // Each promise of connect() that resolves belongs to a connection of the server.
  expect(await Promise.all(calls)).toEqual(calls.map((_, i) => i));
  expect(established).toBe(20);
  expect(listener.counters().refused_full).toBeGreaterThan(0);
});

it('negative control: while others keep their connections there is no room, and the error names the limit', async () => {
  const listener = await listen(await server(), { port: 0, maxConnectionsPerAddress: 1, ...SMALL });
  const device = await client();
  const target = { host: SERVER, port: listener.port, ...SMALL };
  await connect(device, target);
  const full = { code: 'ERR_ROCE_CONNECT', message: expect.stringMatching(/maxConnectionsPerAddress.*busyTimeoutMs/) };
  await expect(connect(device, { ...target, busyTimeoutMs: 0 })).rejects.toMatchObject(full);
  expect(listener.counters().refused_full).toBe(1);
  await expect(connect(device, { ...target, busyTimeoutMs: 200 })).rejects.toMatchObject(full);
  expect(listener.counters().refused_full).toBeGreaterThan(2);
});

it('a wait for room can be aborted', async () => {
  const listener = await listen(await server(), { port: 0, maxConnectionsPerAddress: 1, ...SMALL });
  const device = await client();
  const target = { host: SERVER, port: listener.port, ...SMALL };
  await connect(device, target);
  const waiting: Promise<Connection> = connect(device, { ...target, busyTimeoutMs: 60_000, timeoutMs: 300 });
  await expect(waiting).rejects.toMatchObject({ code: 'ERR_ROCE_TIMEOUT' });
});
