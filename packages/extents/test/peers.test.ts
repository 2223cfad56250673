/** Connections to peers that come and go, or say nothing. */

import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDevice, type RdmaDevice } from '../../../src/index.js';
import { eventually } from '../../../test/support/eventually.js';
import { DualListener } from '../src/live/dual-listener.js';
import { EXTENT_TRANSPORTS } from '../src/live/peer-connector.js';
import { Peers } from '../src/live/peers.js';
import { handlersOf, MANAGER_SERVICE } from '../src/live/services.js';

let device: RdmaDevice;

beforeAll(async () => {
  device = await openDevice({ address: '127.0.0.1', udpPort: 0 });
});
afterAll(() => device.close());

describe.each(EXTENT_TRANSPORTS)('a peer that is reached by %s', (transport) => {
  it('leaves nothing behind when it ends, and is reached anew when it is back', async () => {
    await using peers = Peers.of(device, transport);
    let port = 0;
    for (let life = 1; life <= 2; life++) {
      const door = await DualListener.open(device, { host: '127.0.0.1', port }, { onNotice: undefined });
      port = door.port;
      door.serve(
        MANAGER_SERVICE,
        handlersOf(MANAGER_SERVICE, async () => ({ life })),
      );
      const answer = await peers.manager(`127.0.0.1:${port}`).call('status', {}, 5000);
      expect(answer).toEqual({ life });
      expect(peers.connected).toBe(1);
      await door.close();
      await eventually(() => peers.connected === 0);
    }
  });
});

describe.each(['auto', 'tcp'] as const)('a peer that stands still, asked by %s', (transport) => {
  it('does not hold up the end of the connections', async () => {
    const heard: Socket[] = [];
    const server = createServer((socket) => heard.push(socket)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    try {
      const peers = Peers.of(device, transport);
      const place = { node: 1, address: `127.0.0.1:${transport === 'tcp' ? port - 1 : port}` };
      const call = peers.nodes.call(place, 'fence', { extent: 1, epoch: 1 }, 60_000);
      call.catch(() => {});
      await eventually(() => heard.length === 1);
      const ended = once(heard[0], 'close');
      heard[0].resume();
      await peers.close();
      await expect(call).rejects.toMatchObject({ code: 'ERR_ROCE_CLOSED' });
      await ended;
    } finally {
      for (const socket of heard) socket.destroy();
      server.close();
    }
  }, 10_000); // Less than the 12 s that a connection may take.
});
