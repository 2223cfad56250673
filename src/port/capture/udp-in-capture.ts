/**
 * The UDP datagram in a captured packet. Lenient: a datagram cut short by the capture is returned as far as it goes.
 */

import { readU16 } from '../../core/bytes.js';
import { IpAddress } from '../../packet/address.js';
import { IP_PROTOCOL_UDP, IPV4_BYTES } from '../../packet/ipv4.js';
import { IPV6_BYTES, IPV6_SOURCE_OFFSET } from '../../packet/ipv6.js';
import { UDP_BYTES } from '../../packet/udp.js';
import type { CapturedPacket } from './captured-packet.js';
import { ipOffsetOf } from './link-layer.js';

const IPV4_SOURCE_OFFSET = 12;
const FRAGMENT_MASK = 0x3fff; // more fragments, or an offset

export interface CapturedDatagram {
  readonly source: IpAddress;
  readonly destination: IpAddress;
  readonly sourcePort: number;
  readonly destinationPort: number;
  /** ECN codepoint 0..3. */
  readonly ecn: number;
  /** From the IP header on, without link-layer padding; shorter than the header says when the capture cut it. */
  readonly ipPacket: Uint8Array;
  readonly payload: Uint8Array;
  readonly payloadBytes: number;
}

export function udpOf(packet: CapturedPacket): CapturedDatagram | undefined {
  const start = ipOffsetOf(packet);
  if (start < 0) return undefined;
  const ip = packet.bytes.subarray(start);
  if (ip.length < IPV4_BYTES) return undefined;
  return ip[0] >> 4 === 4 ? udpOverIpv4(ip) : ip[0] >> 4 === 6 ? udpOverIpv6(ip) : undefined;
}

function udpOverIpv4(ip: Uint8Array): CapturedDatagram | undefined {
  const headerBytes = (ip[0] & 0x0f) * 4;
  if (headerBytes < IPV4_BYTES || ip[9] !== IP_PROTOCOL_UDP || (readU16(ip, 6) & FRAGMENT_MASK) !== 0) return undefined;
  return udp(ip, {
    ipBytes: readU16(ip, 2),
    udpOffset: headerBytes,
    addressOffset: IPV4_SOURCE_OFFSET,
    addressBytes: 4,
    ecn: ip[1] & 3,
  });
}

function udpOverIpv6(ip: Uint8Array): CapturedDatagram | undefined {
  if (ip.length < IPV6_BYTES || ip[6] !== IP_PROTOCOL_UDP) return undefined;
  return udp(ip, {
    ipBytes: IPV6_BYTES + readU16(ip, 4),
    udpOffset: IPV6_BYTES,
    addressOffset: IPV6_SOURCE_OFFSET,
    addressBytes: 16,
    ecn: (ip[1] >> 4) & 3,
  });
}

interface IpLayout {
  readonly ipBytes: number;
  readonly udpOffset: number;
  readonly addressOffset: number;
  readonly addressBytes: number;
  readonly ecn: number;
}

function udp(
  captured: Uint8Array,
  { ipBytes, udpOffset, addressOffset, addressBytes, ecn }: IpLayout,
): CapturedDatagram | undefined {
  const payloadStart = udpOffset + UDP_BYTES;
  if (captured.length < payloadStart) return undefined;
  const ipPacket = captured.subarray(0, ipBytes); // without the padding of short frames
  const payloadBytes = readU16(ipPacket, udpOffset + 4) - UDP_BYTES;
  if (payloadBytes < 0 || payloadStart + payloadBytes !== ipBytes) return undefined;
  const destinationOffset = addressOffset + addressBytes;
  return {
    source: IpAddress.fromBytes(ipPacket.subarray(addressOffset, destinationOffset)),
    destination: IpAddress.fromBytes(ipPacket.subarray(destinationOffset, destinationOffset + addressBytes)),
    sourcePort: readU16(ipPacket, udpOffset),
    destinationPort: readU16(ipPacket, udpOffset + 2),
    ecn,
    ipPacket,
    payload: ipPacket.subarray(payloadStart),
    payloadBytes,
  };
}
