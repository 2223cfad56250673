/** Two connections in one process, on addresses of the caller alone, closed after each test. */

import { afterEach } from 'vitest';
import {
  type Connection,
  type ConnectionOptions,
  connect,
  listen,
  openDevice,
  type RdmaDevice,
} from '../../src/index.js';

export function connectionPairs(address: string) {
  const devices: RdmaDevice[] = [];
  afterEach(async () => {
    for (const device of devices.splice(0).reverse()) await device.close();
  });
  return async (options: ConnectionOptions = {}): Promise<{ server: Connection; client: Connection }> => {
    const [serverDevice, clientDevice] = [
      await openDevice({ address, udpPort: 0 }),
      await openDevice({ address, udpPort: 0 }),
    ];
    devices.push(serverDevice, clientDevice);
    const listener = await listen(serverDevice, { port: 0, ...options });
    const target = { host: address, port: listener.port, ...options };
    const [server, client] = await Promise.all([listener.accept(), connect(clientDevice, target)]);
    return { server, client };
  };
}
