/** IPv4 headers (RFC 791) without options, never fragmented, for RoCEv2. */

import { writeU16 } from '../core/bytes.js';
import { addWords, finishChecksum } from './checksum.js';

/** Length of a header without options. */
export const IPV4_BYTES = 20;
/** Protocol number, and IPv6 next header, of UDP (IANA). */
export const IP_PROTOCOL_UDP = 17;
const DONT_FRAGMENT = 0x4000;

/**
 * Writes a header with DF set and its checksum. `source` and `destination` are 4 bytes, `tos` is DSCP << 2 | ECN,
 * `payloadBytes` what follows the header. Returns the offset after it.
 */
export function writeIpv4(
  b: Uint8Array,
  o: number,
  source: Uint8Array,
  destination: Uint8Array,
  protocol: number,
  tos: number,
  ttl: number,
  ipId: number,
  payloadBytes: number,
): number {
  b[o] = 0x45;
  b[o + 1] = tos;
  writeU16(b, o + 2, IPV4_BYTES + payloadBytes);
  writeU16(b, o + 4, ipId);
  writeU16(b, o + 6, DONT_FRAGMENT);
  b[o + 8] = ttl;
  b[o + 9] = protocol;
  for (let i = 0; i < 4; i++) {
    b[o + 12 + i] = source[i];
    b[o + 16 + i] = destination[i];
  }
  refreshIpv4Checksum(b, o);
  return o + IPV4_BYTES;
}

/** Recomputes the header checksum after a change such as an ECN mark or a TTL decrement. */
export function refreshIpv4Checksum(b: Uint8Array, o: number): void {
  writeU16(b, o + 10, 0);
  writeU16(b, o + 10, finishChecksum(addWords(b, o, IPV4_BYTES, 0)));
}

/** Whether the header checksum of the IPv4 header at `o` is right (RFC 791). */
export function isIpv4ChecksumGood(b: Uint8Array, o: number): boolean {
  return finishChecksum(addWords(b, o, IPV4_BYTES, 0)) === 0;
}
