/** Many clients that connect at one time: all are served, none is connected on its side alone, and memory stays bounded. */

import { afterEach, expect, it } from 'vitest';
import { type Connection, connect, listen, openDevice, type RdmaDevice } from '../../src/index.js';

const SERVER = '127.41.4.1';
/** Both ends share a process, and perhaps a busy machine. */
const LIMIT_MS = 400_000;
const PATIENCE = { busyTimeoutMs: 120_000 };

const devices: RdmaDevice[] = [];
afterEach(async () => {
  await Promise.all(devices.splice(0).map((device) => device.close()));
});

async function open(address: string): Promise<RdmaDevice> {
  const device = await openDevice({ address, udpPort: 0 });
  devices.push(device);
  return device;
}

/** Until the test closes its devices. */
function answer(connection: Connection): Promise<void> {
  return connection
    .receive()
    .then(({ data }) => connection.send(data))
    .catch(() => {});
}

/** Sends the number of the client, and expects it back: so both sides have the connection. */
async function echo(connection: Connection, i: number): Promise<number> {
  await connection.send(Buffer.from([i >> 8, i & 0xff]));
  const { data } = await connection.receive();
  return data.readUInt16BE();
}

it.each([
  ['a thousand, from one address', 1000, 1],
  ['a hundred, from fifty addresses', 100, 50],
])(
  'over TCP: %s',
  async (_, connects, addresses) => {
    const listener = await listen(await open(SERVER), { port: 0, maxConnectionsPerAddress: connects });
    void (async () => {
      for await (const connection of listener) void answer(connection);
    })();
    const clients: RdmaDevice[] = [];
    for (let n = 1; n <= addresses; n++) clients.push(await open(`127.41.5.${n}`));
    const before = process.memoryUsage().rss;
    const target = { host: SERVER, port: listener.port, ...PATIENCE };
    const calls = Array.from({ length: connects }, async (_, i) =>
      echo(await connect(clients[i % addresses], target), i),
    );
    expect(await Promise.all(calls)).toEqual(calls.map((_, i) => i));
    // Both ends of a thousand connections: 8 GiB if each had all pages of its receive buffers.
    expect(process.memoryUsage().rss - before).toBeLessThan(1 << 30);
  },
  LIMIT_MS,
);
