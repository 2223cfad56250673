/**
 * UDP headers (RFC 768). RoCEv2 senders leave the checksum zero, also over IPv6 (RFC 6935 allows it for tunnels; the
 * ICRC protects the packet), so zero is accepted everywhere.
 */

import { readU16, writeU16 } from '../core/bytes.js';
import { addWords, finishChecksum } from './checksum.js';
import { IP_PROTOCOL_UDP, IPV4_BYTES, refreshIpv4Checksum } from './ipv4.js';
import { IPV6_BYTES, pseudoHeaderSumV6 } from './ipv6.js';

/** Length of a header. */
export const UDP_BYTES = 8;

/** Writes a header with checksum zero; returns the offset after it. */
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

/** Gives the datagram behind the IPv4 or IPv6 header at `ip` another length, in both headers, with their checksums. */
export function writeUdpLength(b: Uint8Array, ip: number, udp: number, payloadBytes: number): void {
  const bytes = UDP_BYTES + payloadBytes;
  writeU16(b, udp + 4, bytes);
  if (b[ip] >> 4 === 4) {
    writeU16(b, ip + 2, IPV4_BYTES + bytes);
    refreshIpv4Checksum(b, ip);
  } else writeU16(b, ip + 4, udp - ip - IPV6_BYTES + bytes);
  refreshUdpChecksum(b, ip, udp);
}

/**
 * After a change of the payload: an IPv6 checksum is recomputed, an IPv4 one becomes zero, which means none. Zero stays
 * zero.
 */
export function refreshUdpChecksum(b: Uint8Array, ip: number, udp: number): void {
  if (readU16(b, udp + 6) === 0) return;
  if (b[ip] >> 4 === 4) writeU16(b, udp + 6, 0);
  else writeUdpChecksumV6(b, ip, udp);
}

/** True when the checksum over IPv6 is right, or zero. */
export function isUdpChecksumGoodV6(b: Uint8Array, ipOffset: number, udpOffset: number): boolean {
  return readU16(b, udpOffset + 6) === 0 || udpChecksumV6(b, ipOffset, udpOffset) === 0;
}

function udpChecksumV6(b: Uint8Array, ipOffset: number, udpOffset: number): number {
  const bytes = readU16(b, udpOffset + 4);
  return finishChecksum(addWords(b, udpOffset, bytes, pseudoHeaderSumV6(b, ipOffset, IP_PROTOCOL_UDP, bytes)));
}
