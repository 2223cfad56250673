/** IPv6 headers (RFC 8200) without extension headers. */

import { writeU16, writeU32 } from '../core/bytes.js';
import { addWords } from './checksum.js';

/** Length of the fixed header. */
export const IPV6_BYTES = 40;
/** Where in the header the sender's 16 bytes begin. */
export const IPV6_SOURCE_OFFSET = 8;
/** Where in the header the receiver's 16 bytes begin. */
export const IPV6_DESTINATION_OFFSET = 24;

/**
 * Writes a header. `source` and `destination` are 16 bytes, `trafficClass` is DSCP << 2 | ECN, `payloadBytes` what
 * follows the header. Returns the offset after it.
 */
export function writeIpv6(
  b: Uint8Array,
  o: number,
  source: Uint8Array,
  destination: Uint8Array,
  nextHeader: number,
  trafficClass: number,
  flowLabel: number,
  hopLimit: number,
  payloadBytes: number,
): number {
  writeU32(b, o, (0x60000000 | (trafficClass << 20) | flowLabel) >>> 0);
  writeU16(b, o + 4, payloadBytes);
  b[o + 6] = nextHeader;
  b[o + 7] = hopLimit;
  for (let i = 0; i < 16; i++) {
    b[o + IPV6_SOURCE_OFFSET + i] = source[i];
    b[o + IPV6_DESTINATION_OFFSET + i] = destination[i];
  }
  return o + IPV6_BYTES;
}

/** The sum over the pseudo-header of the IPv6 header at `o` (RFC 8200 §8.1), for upper-layer checksums. */
export function pseudoHeaderSumV6(b: Uint8Array, o: number, nextHeader: number, upperBytes: number): number {
  return addWords(b, o + IPV6_SOURCE_OFFSET, 32, upperBytes + nextHeader);
}
