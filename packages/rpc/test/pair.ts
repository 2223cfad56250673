/** Two connections in one process, on addresses of the caller alone, closed after each test. */

import { afterEach } from 'vitest';
import type { Connection, ConnectionOptions, DeviceOptions, RdmaDevice } from '../../../src/index.js';
import * as sourceApi from '../../../src/index.js';

export interface PairsUnderTest {
  /** Default the sources, on the inline engine. */
  readonly api?: Pick<typeof sourceApi, 'connect' | 'listen' | 'openDevice'>;
  readonly options?: Omit<DeviceOptions, 'address'>;
  readonly address: string;
}

export function connectionPairs({ api = sourceApi, options: deviceOptions = {}, address }: PairsUnderTest) {
  const { connect, listen, openDevice } = api;
  const devices: RdmaDevice[] = [];
  afterEach(async () => {
    for (const device of devices.splice(0).reverse()) await device.close();
  });
  return async (options: ConnectionOptions = {}): Promise<{ server: Connection; client: Connection }> => {
    const [serverDevice, clientDevice] = [
      await openDevice({ ...deviceOptions, address, udpPort: 0 }),
      await openDevice({ ...deviceOptions, address, udpPort: 0 }),
    ];
    devices.push(serverDevice, clientDevice);
    const listener = await listen(serverDevice, { port: 0, ...options });
    const target = { host: address, port: listener.port, ...options };
    const [server, client] = await Promise.all([listener.accept(), connect(clientDevice, target)]);
    return { server, client };
  };
}
