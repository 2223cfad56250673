/**
 * What really leaves the host: a packet socket on the loopback interface reads the IP packets back, and their ICRC is computed from every
 * byte of them (root on Linux only).
 */

import { createRequire } from 'node:module';
import { networkInterfaces } from 'node:os';
import { describe, expect, it } from 'vitest';
import { readU16 } from '../../src/core/bytes.js';
import { nativeUdpAvailable, openUdpPort } from '../../src/dgram-ext/index.js';
import { IpAddress } from '../../src/packet/address.js';
import { IcrcFlow, icrcOfIpPacket, sealIcrc } from '../../src/packet/icrc.js';
import { RC_SEND_ONLY } from '../../src/packet/opcode.js';
import { writeBth } from '../../src/packet/roce.js';
import { collect, sendAll, until } from '../contracts/port-contract.js';

const V4 = ['127.0.0.1', '127.0.0.2'].map((text) => IpAddress.parse(text));
const V6 = ['::1', '::1'].map((text) => IpAddress.parse(text));
const hasIpv6 = Object.values(networkInterfaces()).some((entries) => entries?.some(({ address }) => address === '::1'));
const PACKETS = 20;

interface PacketSocket {
  /** IP packets to UDP port `udpPort` seen so far. */
  read(udpPort: number): Uint8Array[];
  close(): void;
}

function openPacketSocket(family: 4 | 6): PacketSocket | undefined {
  if (nativeUdpAvailable() !== undefined || process.getuid?.() !== 0) return undefined;
  const koffi = createRequire(import.meta.url)('koffi') as typeof import('koffi');
  const lib = koffi.load(null);
  const socket = lib.func('int socket(int, int, int)');
  const setsockopt = lib.func('int setsockopt(int, int, int, const void *, uint32_t)');
  const recv = lib.func('long recv(int, _Out_ void *, size_t, int)');
  const close = lib.func('int close(int)');
  const [AF_PACKET, SOCK_DGRAM_NONBLOCK, ETH_P_IP, ETH_P_IPV6] = [17, 2 | 0o4000, 0x0008, 0xdd86]; // network order
  const fd = socket(AF_PACKET, SOCK_DGRAM_NONBLOCK, family === 4 ? ETH_P_IP : ETH_P_IPV6) as number;
  if (fd < 0) return undefined;
  // Other tests talk on the same interface: hold what they send, too.
  const [SOL_SOCKET, SO_RCVBUFFORCE] = [1, 33];
  setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, Buffer.from(new Int32Array([256 << 20]).buffer), 4);
  const buffer = Buffer.alloc(65536);
  const [protocolOffset, headerBytes] = family === 4 ? [9, 20] : [6, 40];
  return {
    read: (udpPort) => {
      const packets: Uint8Array[] = [];
      for (;;) {
        const length = Number(recv(fd, buffer, buffer.length, 0));
        if (length < 0) return packets;
        if (
          length >= headerBytes + 8 &&
          buffer[protocolOffset] === 17 &&
          readU16(buffer, headerBytes + 2) === udpPort
        ) {
          packets.push(Uint8Array.from(buffer.subarray(0, length)));
        }
      }
    },
    close: () => close(fd),
  };
}

/** Sends sealed packets of many lengths and returns them as IP packets from the wire. */
async function packetsOnTheWire(addresses: readonly IpAddress[], native: 'auto' | 'off'): Promise<Uint8Array[]> {
  const wire = openPacketSocket(addresses[0].family);
  if (wire === undefined) throw new Error('no packet socket');
  const a = openUdpPort({ address: addresses[0], udpPort: 0, native });
  const b = openUdpPort({ address: addresses[1], udpPort: 0, native });
  try {
    await Promise.all([a.open(), b.open()]);
    const flow = new IcrcFlow(addresses[0], addresses[1], a.fixedSourcePort ?? 0, b.udpPort);
    const payloads = Array.from({ length: PACKETS }, (_, i) => {
      const bytes = new Uint8Array(16 + 212 * i).fill(i);
      writeBth(bytes, 0, RC_SEND_ONLY, 0, 17, true, i);
      sealIcrc(flow, bytes, 0, bytes.length, 0, undefined);
      return bytes;
    });
    const received = collect(b);
    sendAll(a, b, payloads);
    await until(() => received.length === PACKETS, 'all datagrams');
    return wire.read(b.udpPort);
  } finally {
    await Promise.all([a.close(), b.close()]);
    wire.close();
  }
}

function isIcrcExact(packet: Uint8Array): boolean {
  const { computed, carried } = icrcOfIpPacket(packet);
  return computed === carried;
}

const probe = openPacketSocket(4);
probe?.close();

describe.skipIf(probe === undefined)('packets on the wire (needs root, Linux and koffi)', () => {
  it('over IPv4 from a prepared socket have identification 0, DF, and an exact ICRC', async () => {
    const packets = await packetsOnTheWire(V4, 'auto');
    expect(packets.length).toBeGreaterThanOrEqual(PACKETS);
    expect(packets.every((packet) => readU16(packet, 4) === 0 && readU16(packet, 6) === 0x4000)).toBe(true);
    expect(packets.every(isIcrcExact)).toBe(true);
  });

  it('over IPv4 from a plain socket have an identification of the kernel, which the ICRC does not match', async () => {
    const packets = await packetsOnTheWire(V4, 'off');
    expect(packets.length).toBeGreaterThanOrEqual(PACKETS);
    expect(packets.some((packet) => readU16(packet, 4) !== 0)).toBe(true);
    expect(packets.every(isIcrcExact)).toBe(false);
  });

  it.skipIf(!hasIpv6).each(['auto', 'off'] as const)('over IPv6 have an exact ICRC (native %s)', async (native) => {
    const packets = await packetsOnTheWire(V6, native);
    expect(packets.length).toBeGreaterThanOrEqual(PACKETS);
    expect(packets.every(isIcrcExact)).toBe(true);
  });
});
