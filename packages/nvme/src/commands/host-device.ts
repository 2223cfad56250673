/** An NVMe host needs a separate address, even if the target runs on this machine. */

import { localAddressTowards } from '@rocev2/command';
import { RoceError } from 'rocev2/internal/core';
import { IpAddress } from 'rocev2/internal/packet';
import { type DeviceOptions, openDevice, type RdmaDevice } from 'rocev2/internal/verbs';

const LOOPBACK_NEIGHBOURS = ['127.0.0.2', '127.0.0.3'] as const;

/**
 * A target on this host has UDP port 4791 of its address: where that is on the loopback network, the host takes another
 * one of it.
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

export async function openHostDevice(
  target: string,
  bind: IpAddress | undefined,
  options: Omit<DeviceOptions, 'address'>,
): Promise<RdmaDevice> {
  return await openDevice({ ...options, address: bind?.text ?? (await hostAddress(target)) });
}
