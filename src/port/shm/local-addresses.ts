/** IP addresses of this host: only there can a peer share memory. */

import { networkInterfaces } from 'node:os';
import type { IpAddress } from '../../packet/address.js';

export function isLocalAddress(address: IpAddress): boolean {
  if (address.family === 4 ? address.text.startsWith('127.') : address.text === '::1') return true;
  return Object.values(networkInterfaces()).some((interfaces) =>
    interfaces?.some((entry) => entry.address === address.text),
  );
}
