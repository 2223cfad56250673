/**
 * The ICRC of a captured packet whose end is given: an IP or UDP length that is wrong does not hide it (annex A17.3.3).
 */

import { CRC32_RANGE_BYTES, crc32, crc32At, crc32Range, crc32Step, readU16, writeU16 } from 'rocev2/internal/core';
import { ICRC_BYTES, IPV4_BYTES, trailerBytesOf, UDP_BYTES } from 'rocev2/internal/packet';

const ONES = new Uint8Array(8).fill(0xff);
const SEED = crc32Range(ONES, 0, 8, 0);
/** BTH byte 4 is the last that is masked. */
const MASKED_BTH_BYTES = 5;
/** IPv4 without options, UDP, and the masked bytes. */
const PLAIN_IPV4_BYTES = IPV4_BYTES + UDP_BYTES + MASKED_BTH_BYTES;
/** Version 4, a header of 20 bytes. */
const PLAIN_IPV4_START = 0x45;
const HEADERS_BYTES_MAX = 512;

/** A buffer this long holds many packets: a chunk of a file, or the slab of a port. */
const SLAB_BYTES_MIN = 65_536;

const scratch = new Uint8Array(HEADERS_BYTES_MAX);

interface Place {
  readonly ip: number;
  readonly udp: number;
}

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

/** CRC of IPv4 without options, UDP and the masked BTH bytes: the common case, without a copy. */
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

/** Caches data about the surrounding buffer, because the next packet is also in it. */
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

/**
 * The ICRC in the four bytes before the trailer of the packet that ends at `udpEnd`, which are least significant byte
 * first.
 */
export function carriedIcrc(bytes: Uint8Array, { udp }: Place, udpEnd: number): number {
  const end = icrcEnd(bytes, udp, udpEnd);
  return (bytes[end - 4] | (bytes[end - 3] << 8) | (bytes[end - 2] << 16) | (bytes[end - 1] << 24)) >>> 0;
}

export function repairIcrc(bytes: Uint8Array, place: Place, end: number): void {
  const icrc = computedIcrc(bytes, place, end);
  const behind = icrcEnd(bytes, place.udp, end);
  for (let i = 0; i < ICRC_BYTES; i++) bytes[behind - ICRC_BYTES + i] = icrc >>> (8 * i);
}

function icrcEnd(bytes: Uint8Array, udp: number, udpEnd: number): number {
  const bth = udp + UDP_BYTES;
  return udpEnd - trailerBytesOf(bytes, bth, udpEnd - bth);
}
