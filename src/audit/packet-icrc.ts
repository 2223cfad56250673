/** The ICRC of a captured packet whose end is given: an IP or UDP length that is wrong does not hide it (annex A17.3.3). */

import { CRC32_RANGE_BYTES, crc32, crc32Range } from '../core/crc32.js';
import { ICRC_BYTES } from '../packet/roce.js';
import { UDP_BYTES } from '../packet/udp.js';

const EIGHT_ONES = new Uint8Array(8).fill(0xff);
/** CRC of what stands for the absent local route header. */
const SEED = crc32Range(EIGHT_ONES, 0, 8, 0);
/** BTH byte 4 is the last that is masked. */
const MASKED_BTH_BYTES = 5;
/** The longest IPv4 header, or IPv6 with some extension headers. */
const HEADERS_BYTES_MAX = 512;

const scratch = new Uint8Array(HEADERS_BYTES_MAX);

/** Where a packet stands in an array. */
interface Place {
  /** The IP header. */
  readonly ip: number;
  /** The UDP header. */
  readonly udp: number;
}

/** The ICRC of the packet that ends at `end`, its last four bytes being room for it. 32 bits, as in {@link carriedIcrc}. */
export function computedIcrc(bytes: Uint8Array, { ip, udp }: Place, end: number): number {
  const headers = udp - ip + UDP_BYTES + MASKED_BTH_BYTES;
  if (headers > HEADERS_BYTES_MAX) return -1;
  for (let i = 0; i < headers; i++) scratch[i] = bytes[ip + i];
  if (scratch[0] >> 4 === 4) {
    scratch[1] = 0xff;
    scratch[8] = 0xff;
    scratch[10] = 0xff;
    scratch[11] = 0xff;
  } else {
    scratch[0] |= 0x0f;
    scratch[1] = 0xff;
    scratch[2] = 0xff;
    scratch[3] = 0xff;
    scratch[7] = 0xff;
  }
  scratch[headers - 7] = 0xff;
  scratch[headers - 6] = 0xff;
  scratch[headers - 1] = 0xff;
  const crc = crc32Range(scratch, 0, headers, SEED);
  const rest = ip + headers;
  const length = end - ICRC_BYTES - rest;
  return length <= CRC32_RANGE_BYTES
    ? crc32Range(bytes, rest, length, crc)
    : crc32(bytes.subarray(rest, rest + length), crc);
}

/** The ICRC in the four bytes before `end`, which are least significant byte first. */
export function carriedIcrc(bytes: Uint8Array, end: number): number {
  return (bytes[end - 4] | (bytes[end - 3] << 8) | (bytes[end - 2] << 16) | (bytes[end - 1] << 24)) >>> 0;
}

/** Stores the right ICRC in the four bytes before `end`. */
export function repairIcrc(bytes: Uint8Array, place: Place, end: number): void {
  const icrc = computedIcrc(bytes, place, end);
  for (let i = 0; i < ICRC_BYTES; i++) bytes[end - ICRC_BYTES + i] = icrc >>> (8 * i);
}
