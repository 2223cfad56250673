/** Devices of a test file. */

import { afterEach } from 'vitest';
import { type DeviceOptions, openDevice, type RdmaDevice } from '../../src/index.js';

/** What opens a device at the address. After each test all that it has opened are closed, the last one first. `open` for devices of the built package. */
export function devicesAt(
  address: string,
  open: (options: DeviceOptions) => Promise<RdmaDevice> = openDevice,
): (options?: Partial<DeviceOptions>) => Promise<RdmaDevice> {
  const devices: RdmaDevice[] = [];
  afterEach(async () => {
    for (const device of devices.splice(0).reverse()) await device.close();
  });
  return async (options) => {
    const device = await open({ address, udpPort: 0, ...options });
    devices.push(device);
    return device;
  };
}
