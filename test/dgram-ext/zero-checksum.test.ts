/** RoCEv2 senders leave the UDP checksum zero over IPv6 too, which Linux drops unless the socket allows it. */

import { createRequire } from 'node:module';
import { networkInterfaces } from 'node:os';
import { describe, expect, it } from 'vitest';
import { nativeUdpAvailable, openUdpPort } from '../../src/dgram-ext/index.js';
import { IpAddress } from '../../src/packet/address.js';
import type { Port } from '../../src/port/datagram.js';
import { collect, until } from '../contracts/port-contract.js';

const LOOPBACK = IpAddress.parse('::1');
const hasIpv6 = Object.values(networkInterfaces()).some((entries) => entries?.some(({ address }) => address === '::1'));

/** Sends `bytes` to ::1 without a UDP checksum, then once more with one. */
function sendWithoutThenWithChecksum(bytes: Uint8Array, udpPort: number): void {
  const koffi = createRequire(import.meta.url)('koffi') as typeof import('koffi');
  const lib = koffi.load(null);
  const socket = lib.func('int socket(int, int, int)');
  const setsockopt = lib.func('int setsockopt(int, int, int, const void *, uint32_t)');
  const sendto = lib.func('long sendto(int, const void *, size_t, int, const void *, uint32_t)');
  const close = lib.func('int close(int)');
  const [AF_INET6, SOCK_DGRAM, IPPROTO_UDP, UDP_NO_CHECK6_TX] = [10, 2, 17, 101];
  const to = new Uint8Array(28);
  to[0] = AF_INET6;
  to.set([udpPort >> 8, udpPort & 0xff], 2);
  to.set(LOOPBACK.bytes, 8);
  const fd = socket(AF_INET6, SOCK_DGRAM, 0) as number;
  for (const withoutChecksum of [1, 0]) {
    setsockopt(fd, IPPROTO_UDP, UDP_NO_CHECK6_TX, Uint8Array.of(withoutChecksum, 0, 0, 0), 4);
    sendto(fd, Uint8Array.of(withoutChecksum, ...bytes), bytes.length + 1, 0, to, to.length);
  }
  close(fd);
}

async function heard(port: Port): Promise<number[]> {
  await port.open();
  try {
    const received = collect(port);
    sendWithoutThenWithChecksum(new Uint8Array(20), port.udpPort);
    await until(() => received.at(-1)?.payload[0] === 0, 'the datagram with a checksum');
    return received.map(({ payload }) => payload[0]);
  } finally {
    await port.close();
  }
}

describe.skipIf(!hasIpv6 || nativeUdpAvailable() !== undefined)(
  'zero UDP checksums over IPv6 (needs ::1, Linux and koffi)',
  () => {
    it('are heard by a prepared socket', async () => {
      expect(await heard(openUdpPort({ address: LOOPBACK, udpPort: 0 }))).toEqual([1, 0]);
    });

    it('are dropped by the kernel in front of a plain one', async () => {
      expect(await heard(openUdpPort({ address: LOOPBACK, udpPort: 0, native: 'off' }))).toEqual([0]);
    });
  },
);
