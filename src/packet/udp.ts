/**
 * UDP headers (RFC 768). RoCEv2 senders leave the checksum zero, over IPv6 too (RFC 6935 allows it for tunnels; the ICRC protects the
 * packet), so zero is accepted everywhere.
 */

import { readU16, writeU16 } from '../core/bytes.js';
import { addWords, finishChecksum } from './checksum.js';
import { IP_PROTOCOL_UDP } from './ipv4.js';
import { pseudoHeaderSumV6 } from './ipv6.js';

/** Length of a header. */
export const UDP_BYTES = 8;

/** Writes a header with checksum zero; returns the offset behind it. */
export function writeUdp(
  b: Uint8Array,
  o: number,
  sourcePort: number,
  destinationPort: number,
  payloadBytes: number,
): number {
  writeU16(b, o, sourcePort);
  writeU16(b, o + 2, destinationPort);
  writeU16(b, o + 4, UDP_BYTES + payloadBytes);
  writeU16(b, o + 6, 0);
  return o + UDP_BYTES;
}

/** Stores the checksum of the datagram whose UDP header is at `udpOffset` behind the IPv6 header at `ipOffset`. */
export function writeUdpChecksumV6(b: Uint8Array, ipOffset: number, udpOffset: number): void {
  writeU16(b, udpOffset + 6, 0);
  // Zero means "no checksum", so a sum of zero is sent as its other form.
  writeU16(b, udpOffset + 6, udpChecksumV6(b, ipOffset, udpOffset) || 0xffff);
}

/** True when the checksum over IPv6 is right, or zero. */
export function isUdpChecksumGoodV6(b: Uint8Array, ipOffset: number, udpOffset: number): boolean {
  return readU16(b, udpOffset + 6) === 0 || udpChecksumV6(b, ipOffset, udpOffset) === 0;
}

function udpChecksumV6(b: Uint8Array, ipOffset: number, udpOffset: number): number {
  const bytes = readU16(b, udpOffset + 4);
  return finishChecksum(addWords(b, udpOffset, bytes, pseudoHeaderSumV6(b, ipOffset, IP_PROTOCOL_UDP, bytes)));
}
