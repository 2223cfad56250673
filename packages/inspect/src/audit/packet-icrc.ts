/** The ICRC of a captured packet whose end is given: an IP or UDP length that is wrong does not hide it (annex A17.3.3). */

import { CRC32_RANGE_BYTES, crc32, crc32At, crc32Range, crc32Step, readU16, writeU16 } from 'rocev2/internal/core';
import { ICRC_BYTES, IPV4_BYTES, trailerBytesOf, UDP_BYTES } from 'rocev2/internal/packet';

const ONES = new Uint8Array(8).fill(0xff);
/** CRC of what stands for the absent local route header. */
const SEED = crc32Range(ONES, 0, 8, 0);
/** BTH byte 4 is the last that is masked. */
const MASKED_BTH_BYTES = 5;
/** IPv4 without options, UDP, and the masked bytes. */
const PLAIN_IPV4_BYTES = IPV4_BYTES + UDP_BYTES + MASKED_BTH_BYTES;
/** Version 4, a header of 20 bytes. */
const PLAIN_IPV4_START = 0x45;
/** The longest IPv4 header, or IPv6 with some extension headers. */
const HEADERS_BYTES_MAX = 512;

/** A buffer this long holds many packets: a chunk of a file, or the slab of a port. */
const SLAB_BYTES_MIN = 65_536;

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
  const isPlain = trailerBytes === 0 && headers === PLAIN_IPV4_BYTES && bytes[ip] === PLAIN_IPV4_START;
  const crc = isPlain ? plainHeadersSum(bytes, ip) : headersSum(bytes, ip, headers, trailerBytes);
  const rest = ip + headers;
  const length = end - ICRC_BYTES - rest;
  return length <= CRC32_RANGE_BYTES ? crc32Range(bytes, rest, length, crc) : sumOf(bytes, rest, length, crc);
}

/** CRC of IPv4 without options, UDP and the masked bytes of the BTH: what nearly every packet has, without a copy. */
function plainHeadersSum(b: Uint8Array, o: number): number {
  let register = ~SEED;
  register = crc32Step(register ^ (b[o] | 0xff00 | (b[o + 2] << 16) | (b[o + 3] << 24)), b, o + 4);
  // Time to live, checksum.
  register = crc32Step(register ^ (0xffff00ff | (b[o + 9] << 8)), b, o + 12);
  register = crc32Step(register ^ (b[o + 16] | (b[o + 17] << 8) | (b[o + 18] << 16) | (b[o + 19] << 24)), b, o + 20);
  // The checksum of UDP.
  register = crc32Step(register ^ (b[o + 24] | (b[o + 25] << 8) | 0xffff0000), b, o + 28);
  return crc32Range(ONES, 0, 1, ~register >>> 0);
}

/** CRC of all headers as far as the masked bytes of the BTH, on a copy. */
function headersSum(bytes: Uint8Array, ip: number, headers: number, trailerBytes: number): number {
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
  return crc32Range(scratch, 0, headers, SEED);
}

let slab: Uint8Array = new Uint8Array(0);

/** CRC-32 of a long range. What is known of the buffer around it is remembered, because the next packet stands there, too. */
function sumOf(bytes: Uint8Array, offset: number, length: number, seed: number): number {
  const { buffer } = bytes;
  if (slab.buffer !== buffer) {
    if (buffer.byteLength < SLAB_BYTES_MIN) return crc32(bytes.subarray(offset, offset + length), seed);
    slab = new Uint8Array(buffer);
  }
  return crc32At(slab, bytes.byteOffset + offset, length, seed) >>> 0;
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
