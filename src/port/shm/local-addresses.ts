/** Which IP addresses are of this host: only there can a peer share memory. */

import { networkInterfaces } from 'node:os';
import type { IpAddress } from '../../packet/address.js';

/** Whether datagrams to `address` stay on this host: the loopback networks, and what its interfaces have now. */
export function isLocalAddress(address: IpAddress): boolean {
  if (address.family === 4 ? address.text.startsWith('127.') : address.text === '::1') return true;
  return Object.values(networkInterfaces()).some((interfaces) =>
    interfaces?.some((entry) => entry.address === address.text),
  );
}
