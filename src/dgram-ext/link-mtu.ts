/**
 * The largest RoCE path MTU an interface can carry in unfragmented datagrams (the ICRC does not survive IP
 * fragmentation).
 */

import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import type { IpAddress } from '../packet/address.js';
import { PATH_MTUS } from '../packet/path-mtu.js';
import { isLoopback } from './udp-endpoint.js';

/** Room for IPv6, UDP, BTH, the largest extension headers, pad and ICRC (40 + 8 + 12 + 28 + 3 + 4), rounded up. */
const OVERHEAD_BYTES = 96;
/** What an Ethernet of 1500 bytes carries: the safe answer if the link's MTU is unknown. */
const USUAL_PATH_MTU = 1024;

export function pathMtuForLink(linkMtuBytes: number): number {
  return PATH_MTUS.findLast((mtu) => mtu + OVERHEAD_BYTES <= linkMtuBytes) ?? PATH_MTUS[0];
}

export function pathMtuForAddress(address: IpAddress, extraBytes = 0): number {
  if (isLoopback(address)) return 4096;
  for (const [name, entries] of Object.entries(networkInterfaces())) {
    if (!entries?.some((entry) => entry.address === address.text)) continue;
    try {
      return pathMtuForLink(Number(readFileSync(`/sys/class/net/${name}/mtu`, 'utf8')) - extraBytes);
    } catch {
      return USUAL_PATH_MTU;
    }
  }
  return USUAL_PATH_MTU;
}
