/** Linux only; elsewhere the answer is unknown. */

import { readFileSync } from 'node:fs';
import type { IpAddress } from '../packet/address.js';
import { libC } from './libc.js';
import { pathMtuForLink } from './link-mtu.js';
import { AF_INET, AF_INET6, socketAddressLength, writeSocketAddress } from './socket-address.js';

const SOCK_DGRAM_CLOEXEC = 2 | 0o2000000;
const IPPROTO_IP = 0;
const IP_MTU = 14;
const IPPROTO_IPV6 = 41;
const IPV6_MTU = 24;
/** Nothing is sent there: a UDP socket that connects only looks for a route. */
const ANY_PORT = 9;

/**
 * The path MTU (256..4096) that gets through from `local` to `remote` as currently known to the kernel: the link's, or
 * that reported by a router (RFC 1191, RFC 8201). It costs four system calls.
 */
export function pathMtuTowards(local: IpAddress, remote: IpAddress): number | undefined {
  const lib = libC();
  if (typeof lib === 'string' || local.family !== remote.family) return undefined;
  const isV4 = local.family === 4;
  const fd = lib.socket(isV4 ? AF_INET : AF_INET6, SOCK_DGRAM_CLOEXEC, 0);
  if (fd < 0) return undefined;
  const socketAddress = (address: IpAddress, port: number): Uint8Array => {
    const bytes = new Uint8Array(socketAddressLength(address.family));
    writeSocketAddress(bytes, 0, address, port);
    return bytes;
  };
  try {
    const from = socketAddress(local, 0);
    const to = socketAddress(remote, ANY_PORT);
    if (lib.bind(fd, from, from.length) !== 0 || lib.connect(fd, to, to.length) !== 0) return undefined;
    const value = new Uint8Array(4);
    const [level, option] = isV4 ? [IPPROTO_IP, IP_MTU] : [IPPROTO_IPV6, IPV6_MTU];
    if (lib.getsockopt(fd, level, option, value, Uint8Array.of(4, 0, 0, 0)) !== 0) return undefined;
    return pathMtuForLink(new DataView(value.buffer).getInt32(0, true));
  } finally {
    lib.close(fd);
  }
}

/**
 * Datagrams that found the receive buffer of the UDP socket on `address`:`udpPort` full, as the kernel counts them
 * (`drops` of /proc/net/udp; a train that came in one piece is one).
 */
export function receiveOverruns(address: IpAddress, udpPort: number): number | undefined {
  const place = `${hexOf(address)}:${udpPort.toString(16).toUpperCase().padStart(4, '0')}`;
  let table: string;
  try {
    table = readFileSync(address.family === 4 ? '/proc/net/udp' : '/proc/net/udp6', 'latin1');
  } catch {
    return undefined;
  }
  const at = table.indexOf(`: ${place} `);
  if (at < 0) return undefined;
  const end = table.indexOf('\n', at);
  return Number(
    table
      .slice(at, end < 0 ? undefined : end)
      .trimEnd()
      .split(' ')
      .at(-1),
  );
}

/**
 * As the kernel prints it: 32-bit words in the order of the machine, which is little-endian wherever this library calls
 * the C library.
 */
function hexOf({ bytes }: IpAddress): string {
  const words: string[] = [];
  for (let i = 0; i < bytes.length; i += 4) {
    words.push(
      Buffer.from(bytes.subarray(i, i + 4))
        .reverse()
        .toString('hex'),
    );
  }
  return words.join('').toUpperCase();
}
