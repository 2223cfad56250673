/** Opens an RDMA device: a port, a NIC on it, and the verbs objects over it. */

import { InlineEngine } from '../driver/inline-engine.js';
import { openPort, type PortOptions } from '../driver/open-port.js';
import { systemRandom } from '../driver/system-random.js';
import { RdmaDevice } from './device.js';

export interface DeviceOptions extends PortOptions {
  /** Where the NIC runs: on the caller's event loop. */
  readonly engine?: 'inline';
}

/**
 * Opens a software RDMA NIC on an IP address of this host.
 *
 *     const device = await openDevice({ address: '127.0.0.1' });
 *
 * Two endpoints on one host use two addresses (`127.0.0.1` and `127.0.0.2`), or one address and two UDP ports. Rejects with ERR_ROCE_IO when
 * the UDP port is taken or the address is not this host's.
 */
export async function openDevice(options: DeviceOptions): Promise<RdmaDevice> {
  const open = await openPort(options);
  const engine = new InlineEngine(open, systemRandom());
  return RdmaDevice.over(engine);
}
