/** Connections to peers that come and go. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EXTENT_TRANSPORTS, Peers } from '../../src/extents/live/peers.js';
import { ServiceDoor } from '../../src/extents/live/service-door.js';
import { handlersOf, MANAGER_SERVICE } from '../../src/extents/live/services.js';
import { openDevice, type RdmaDevice } from '../../src/index.js';
import { eventually } from '../support/eventually.js';

let device: RdmaDevice;

beforeAll(async () => {
  device = await openDevice({ address: '127.0.0.1', udpPort: 0 });
});
afterAll(() => device.close());

describe.each(EXTENT_TRANSPORTS)('a peer that is reached by %s', (transport) => {
  it('leaves nothing behind when it ends, and is reached anew when it is back', async () => {
    await using peers = new Peers(device, transport);
    let port = 0;
    for (let life = 1; life <= 2; life++) {
      const door = await ServiceDoor.open(device, { host: '127.0.0.1', port });
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
