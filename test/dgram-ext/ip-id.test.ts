/** What really leaves the host: a packet socket on the loopback interface reads the IP headers back (root on Linux only). */

import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import { readU16 } from '../../src/core/bytes.js';
import { nativeUdpAvailable, openUdpPort } from '../../src/dgram-ext/index.js';
import { IpAddress } from '../../src/packet/address.js';
import { collect, sendAll, until } from '../contracts/port-contract.js';

const A = IpAddress.parse('127.0.0.1');
const B = IpAddress.parse('127.0.0.2');

interface PacketSocket {
  /** IPv4 packets to UDP port `udpPort` seen since the last call. */
  read(udpPort: number): Uint8Array[];
  close(): void;
}

function openPacketSocket(): PacketSocket | undefined {
  if (nativeUdpAvailable() !== undefined || process.getuid?.() !== 0) return undefined;
  const koffi = createRequire(import.meta.url)('koffi') as typeof import('koffi');
  const lib = koffi.load(null);
  const socket = lib.func('int socket(int, int, int)');
  const setsockopt = lib.func('int setsockopt(int, int, int, const void *, uint32_t)');
  const recv = lib.func('long recv(int, _Out_ void *, size_t, int)');
  const close = lib.func('int close(int)');
  const [AF_PACKET, SOCK_DGRAM_NONBLOCK, ETH_P_IP_NETWORK_ORDER] = [17, 2 | 0o4000, 0x0008];
  const fd = socket(AF_PACKET, SOCK_DGRAM_NONBLOCK, ETH_P_IP_NETWORK_ORDER) as number;
  if (fd < 0) return undefined;
  // Other tests talk on the same interface: hold what they send, too.
  const [SOL_SOCKET, SO_RCVBUFFORCE] = [1, 33];
  setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, Buffer.from(new Int32Array([256 << 20]).buffer), 4);
  const buffer = Buffer.alloc(65536);
  return {
    read: (udpPort) => {
      const packets: Uint8Array[] = [];
      for (;;) {
        const length = Number(recv(fd, buffer, buffer.length, 0));
        if (length < 0) break;
        if (length >= 28 && buffer[9] === 17 && readU16(buffer, 22) === udpPort)
          packets.push(Uint8Array.from(buffer.subarray(0, length)));
      }
      return packets;
    },
    close: () => close(fd),
  };
}

async function ipHeadersOf(native: 'auto' | 'off'): Promise<Array<{ id: number; dontFragment: boolean }>> {
  const wire = openPacketSocket();
  if (wire === undefined) throw new Error('no packet socket');
  const a = openUdpPort({ address: A, udpPort: 0, native });
  const b = openUdpPort({ address: B, udpPort: 0, native });
  try {
    await Promise.all([a.open(), b.open()]);
    const received = collect(b);
    sendAll(
      a,
      b,
      Array.from({ length: 20 }, (_, i) => new Uint8Array(20 + 200 * i)),
    );
    await until(() => received.length === 20, 'all datagrams');
    return wire.read(b.udpPort).map((packet) => ({ id: readU16(packet, 4), dontFragment: (packet[6] & 0x40) !== 0 }));
  } finally {
    await Promise.all([a.close(), b.close()]);
    wire.close();
  }
}

const probe = openPacketSocket();
probe?.close();

describe.skipIf(probe === undefined)('IPv4 identification on the wire (needs root, Linux and koffi)', () => {
  it('is 0 with DF on every datagram of a prepared socket', async () => {
    const headers = await ipHeadersOf('auto');
    expect(headers.length).toBeGreaterThanOrEqual(20);
    expect(headers.every(({ id, dontFragment }) => id === 0 && dontFragment)).toBe(true);
  });

  it('is not under control on a plain socket', async () => {
    const headers = await ipHeadersOf('off');
    expect(headers.length).toBeGreaterThanOrEqual(20);
    expect(headers.some(({ id }) => id !== 0)).toBe(true);
  });
});
