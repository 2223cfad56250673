/** The RDMA device of an NVMe host: it needs an address of its own, also where the target runs on this machine. */

import { RoceError } from '../../core/errors.js';
import { IpAddress } from '../../packet/address.js';
import type { RdmaDevice } from '../../verbs/device.js';
import { type DeviceOptions, openDevice } from '../../verbs/open-device.js';
import { localAddressTowards } from '../local-address.js';

/** Neither the target nor, as a rule, anything else has it. */
const LOOPBACK_NEIGHBOURS = ['127.0.0.2', '127.0.0.3'] as const;

/**
 * The address for a host of a target. A target on this host has UDP port 4791 of its address: where that is on the loopback network, the host takes another one of it. Rejects with
 * ERR_ROCE_CONFLICT for other addresses of this host, and ERR_ROCE_CONNECT where there is no route.
 */
export async function hostAddress(target: string): Promise<string> {
  const { text } = await localAddressTowards(IpAddress.parse(target));
  if (text !== target) return text;
  if (text.startsWith('127.')) return LOOPBACK_NEIGHBOURS.find((neighbour) => neighbour !== target)!;
  throw new RoceError(
    'ERR_ROCE_CONFLICT',
    `the target at ${target} is on this host, and RDMA needs an address for each side`,
    'give --bind, or bind= in a URI, with another address of this host; or use TCP',
  );
}

/** Opens the device at `bind`, or at {@link hostAddress}. Rejects as that and `openDevice` do. */
export async function openHostDevice(
  target: string,
  bind: IpAddress | undefined,
  options: Omit<DeviceOptions, 'address'>,
): Promise<RdmaDevice> {
  return await openDevice({ ...options, address: bind?.text ?? (await hostAddress(target)) });
}
