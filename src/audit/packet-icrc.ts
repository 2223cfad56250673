/** The ICRC of a captured packet whose end is given: an IP or UDP length that is wrong does not hide it (annex A17.3.3). */

import { readU16, writeU16 } from '../core/bytes.js';
import { CRC32_RANGE_BYTES, crc32, crc32Range } from '../core/crc32.js';
import { trailerBytesOf } from '../packet/int-trailer.js';
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

/** The ICRC of the packet that ends at `end`, the four bytes before its trailer, if it has one, being room for it. 32 bits, as in {@link carriedIcrc}. */
export function computedIcrc(bytes: Uint8Array, { ip, udp }: Place, udpEnd: number): number {
  const end = icrcEnd(bytes, udp, udpEnd);
  const trailerBytes = udpEnd - end;
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
  if (trailerBytes > 0) withoutTrailer(headers - MASKED_BTH_BYTES - UDP_BYTES, trailerBytes);
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

/** Lessens the lengths of the headers in `scratch`: the ICRC is that of the packet without trailer. */
function withoutTrailer(udp: number, trailerBytes: number): void {
  const ipLength = scratch[0] >> 4 === 4 ? 2 : 4;
  for (const at of [ipLength, udp + 4]) writeU16(scratch, at, readU16(scratch, at) - trailerBytes);
}

/** The ICRC in the four bytes before the trailer of the packet that ends at `udpEnd`, which are least significant byte first. */
export function carriedIcrc(bytes: Uint8Array, { udp }: Place, udpEnd: number): number {
  const end = icrcEnd(bytes, udp, udpEnd);
  return (bytes[end - 4] | (bytes[end - 3] << 8) | (bytes[end - 2] << 16) | (bytes[end - 1] << 24)) >>> 0;
}

/** Stores the right ICRC in the four bytes before `end`. */
export function repairIcrc(bytes: Uint8Array, place: Place, end: number): void {
  const icrc = computedIcrc(bytes, place, end);
  const behind = icrcEnd(bytes, place.udp, end);
  for (let i = 0; i < ICRC_BYTES; i++) bytes[behind - ICRC_BYTES + i] = icrc >>> (8 * i);
}

/** Behind the ICRC: before the trailer. */
function icrcEnd(bytes: Uint8Array, udp: number, udpEnd: number): number {
  const bth = udp + UDP_BYTES;
  return udpEnd - trailerBytesOf(bytes, bth, udpEnd - bth);
}
