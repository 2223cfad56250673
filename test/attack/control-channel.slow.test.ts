/** What a stranger may send on the TCP port of `listen()`: it ends his own connection and nobody else's. */

import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { connect, type Listener, listen, openDevice, type RdmaDevice } from '../../src/index.js';
import { helloOf, nested } from './toolkit/hostile-connections.js';

const SERVER = '127.44.0.1';
const CLIENT = '127.44.0.2';

const devices: RdmaDevice[] = [];
afterEach(async () => {
  await Promise.all(devices.splice(0).map((device) => device.close()));
});

async function device(address: string): Promise<RdmaDevice> {
  const opened = await openDevice({ address, udpPort: 0 });
  devices.push(opened);
  return opened;
}

/** Serves every peer that comes: what it writes into the region is there for all to see. */
async function serve(listener: Listener): Promise<void> {
  for await (const connection of listener) void connection.qp;
}

describe.each([
  ['a barrier nested 30,000 deep', `{"barrier": ${nested(30_000)}}\n`],
  ['a purpose nested 20,000 deep', `{"purpose": ${nested(20_000)}}\n`],
  ['a barrier that is no text', '{"barrier": {"toString": 1}}\n'],
  ['null', 'null\n'],
  ['no JSON', 'GET / HTTP/1.1\r\n\r\n'],
  ['a line without end', 'x'.repeat(100_000)],
])('%s', (_, text) => {
  it('ends the connection of the stranger alone; honest peers before and after are served', async () => {
    const server = await device(SERVER);
    const region = server.allocate(4096);
    const listener = await listen(server, { port: 0, region });
    let ended: unknown = 'not yet';
    void serve(listener).then(
      () => (ended = 'orderly'),
      (error) => (ended = error),
    );
    const client = await device(CLIENT);
    const options = { host: SERVER, port: listener.port };
    const before = await connect(client, options);

    const stranger = connectTcp({ host: SERVER, port: listener.port, localAddress: CLIENT });
    stranger.on('error', () => {}); // It may be reset.
    await once(stranger, 'connect');
    stranger.write(helloOf(client.address.text));
    await once(stranger, 'data');
    stranger.end(text);
    await once(stranger, 'close');

    const after = await connect(client, options);
    const data = client.allocate(8).fill(9);
    await before.write(data, 0);
    await after.write(data, 8);
    expect(region.subarray(0, 16).every((byte) => byte === 9)).toBe(true);
    expect(ended).toBe('not yet');
    await listener.close();
    await expect.poll(() => ended).toBe('orderly');
  });
});
