/**
 * The invariant CRC of RoCEv2 (annex A17.3.3): CRC-32 over eight 0xFF, the IP header, the UDP header and BTH .. pad, in
 * which every field that a router may change is replaced by ones. Its four bytes travel least significant byte first.
 *
 * CRC is linear over GF(2): crc(a ^ d) = crc(a) ^ L(d). Two things follow. The headers of a flow differ from packet to
 * packet only in lengths and identification, so their CRC is a constant plus table entries. And the one covered field
 * that a UDP socket hides, the IPv4 identification, can be computed from the ICRC: 16 unknown bits in 32 equations
 * leave 16 bits of check.
 *
 * IPv4 headers are taken to have no options, DF set and offset 0, as every RoCEv2 sender makes them.
 */

import { readU16, writeU16 } from '../core/bytes.js';
import { CRC32_POLYNOMIAL, CRC32_RANGE_BYTES, crc32, crc32At, crc32PacketSigned, crc32Range } from '../core/crc32.js';
import { RoceError } from '../core/errors.js';
import type { IpAddress } from './address.js';
import { BTH_TRAILER, trailerBytesOf } from './int-trailer.js';
import { IP_PROTOCOL_UDP, IPV4_BYTES } from './ipv4.js';
import { IPV6_BYTES } from './ipv6.js';
import { BTH_BYTES, ICRC_BYTES } from './roce.js';
import { UDP_BYTES } from './udp.js';

/** The ICRC is right: the packet is as it was sent. */
export const ICRC_OK = 0;
/** Good if the identification is `flow.solvedId`; 16 bits of check remain. */
export const ICRC_OK_ID_SOLVED = 1;
/** The ICRC is wrong: the packet must be dropped. */
export const ICRC_BAD = 2;

/**
 * The `ipId` of a packet whose identification is not known and most likely 0; `IP_ID_UNKNOWN - n` when it is most
 * likely n.
 */
export const IP_ID_UNKNOWN = -1;
/**
 * The `ipId` of a packet that came in PSP and was authentic: its integrity is proven by more than a checksum, and no
 * ICRC has to be computed.
 */
export const IP_ID_PROTECTED = -0x1_0000;

/** CRC-32 of any message followed by its own CRC, least significant byte first: the same with a sign. */
const RESIDUE = 0x2144df1c;

/** L of every value of one byte that has `after` bytes after it in the prefix. */
function contributions(after: number): Int32Array {
  const table = new Int32Array(256);
  const zeros = new Uint8Array(after + 1);
  const base = crc32Range(zeros, 0, zeros.length, 0);
  const bytes = zeros.slice();
  for (let value = 0; value < 256; value++) {
    bytes[0] = value;
    table[value] = crc32Range(bytes, 0, bytes.length, 0) ^ base;
  }
  return table;
}

const UDP_LENGTH_HIGH = contributions(3);
const UDP_LENGTH_LOW = contributions(2);
const V4_LENGTH_HIGH = contributions(IPV4_BYTES + UDP_BYTES - 3);
const V4_LENGTH_LOW = contributions(IPV4_BYTES + UDP_BYTES - 4);
const V4_ID_HIGH = contributions(IPV4_BYTES + UDP_BYTES - 5);
const V4_ID_LOW = contributions(IPV4_BYTES + UDP_BYTES - 6);
const V6_LENGTH_HIGH = contributions(IPV6_BYTES + UDP_BYTES - 5);
const V6_LENGTH_LOW = contributions(IPV6_BYTES + UDP_BYTES - 6);

/** The common part of all ICRCs of one direction between two UDP ports. */
export class IcrcFlow {
  /** Address family of both addresses. */
  readonly family: 4 | 6;
  /** The identification that {@link checkIcrc} found, after ICRC_OK_ID_SOLVED. */
  solvedId = 0;
  /** The CRC that {@link trainHolds} expects after each packet of a train, by packet length. */
  #trainSums: number[] = [];
  #trainPacketBytes = 0;
  /** CRC of the masked headers with lengths and identification zero. */
  readonly #base: number;

  /** Throws ERR_ROCE_ADDRESS_FAMILY when the addresses are not of one family. */
  constructor(source: IpAddress, destination: IpAddress, sourcePort: number, destinationPort: number) {
    if (source.family !== destination.family) {
      throw new RoceError(
        'ERR_ROCE_ADDRESS_FAMILY',
        `${source} and ${destination} do not have the same address family`,
      );
    }
    this.family = source.family;
    const ip = this.family === 4 ? maskedIpv4(source, destination) : maskedIpv6(source, destination);
    const udp = Uint8Array.of(sourcePort >> 8, sourcePort, destinationPort >> 8, destinationPort, 0, 0, 0xff, 0xff);
    this.#base = crc32(udp, crc32(ip, crc32(new Uint8Array(8).fill(0xff))));
  }

  /**
   * CRC-32 up to the BTH for a UDP payload of that many bytes, with a sign, to be continued over the BTH. `ipId` is
   * ignored for IPv6.
   */
  prefix(udpPayloadBytes: number, ipId: number): number {
    const udp = udpPayloadBytes + UDP_BYTES;
    let crc = this.#base ^ UDP_LENGTH_HIGH[udp >> 8] ^ UDP_LENGTH_LOW[udp & 0xff];
    if (this.family === 4) {
      const total = udp + IPV4_BYTES;
      crc ^= V4_LENGTH_HIGH[total >> 8] ^ V4_LENGTH_LOW[total & 0xff] ^ V4_ID_HIGH[ipId >> 8] ^ V4_ID_LOW[ipId & 0xff];
    } else crc ^= V6_LENGTH_HIGH[udp >> 8] ^ V6_LENGTH_LOW[udp & 0xff];
    return crc;
  }

  /**
   * The CRC-32 after the last of `packets` correct packets of `packetBytes` each, with the identifications 0, 1, 2 ...,
   * starting from the prefix of the first. By linearity it is known in advance: a sum that enters a packet with another
   * value than its prefix leaves it with another value than the residue.
   */
  trainSum(packetBytes: number, packets: number): number {
    if (packetBytes !== this.#trainPacketBytes) {
      this.#trainPacketBytes = packetBytes;
      this.#trainSums = [RESIDUE];
    }
    const sums = this.#trainSums;
    if (sums.length < packets) {
      const wholePacket = power(X, packetBytes);
      for (let id = sums.length; id < packets; id++) {
        const change = (sums[id - 1] ^ this.prefix(packetBytes, id)) >>> 0;
        sums.push((RESIDUE ^ multiply(change, wholePacket)) >>> 0);
      }
    }
    return sums[packets - 1];
  }
}

function maskedIpv4(source: IpAddress, destination: IpAddress): Uint8Array {
  const ip = new Uint8Array(IPV4_BYTES);
  ip[0] = 0x45;
  ip[6] = 0x40;
  ip[9] = IP_PROTOCOL_UDP;
  ip.set(source.bytes, 12);
  ip.set(destination.bytes, 16);
  maskIp(ip);
  return ip;
}

function maskedIpv6(source: IpAddress, destination: IpAddress): Uint8Array {
  const ip = new Uint8Array(IPV6_BYTES);
  ip[0] = 0x60;
  ip[6] = IP_PROTOCOL_UDP;
  ip.set(source.bytes, 8);
  ip.set(destination.bytes, 24);
  maskIp(ip);
  return ip;
}

/** Sets the variant fields of an IP header to ones: class, flow label, hop limit, checksum. */
function maskIp(ip: Uint8Array): void {
  if (ip[0] >> 4 === 4) {
    ip[1] = 0xff;
    ip[8] = 0xff;
    ip[10] = 0xff;
    ip[11] = 0xff;
  } else {
    ip[0] |= 0x0f;
    ip[1] = 0xff;
    ip[2] = 0xff;
    ip[3] = 0xff;
    ip[7] = 0xff;
  }
}

/**
 * Computes and stores the ICRC of the packet `bytes[offset, offset + length)`, whose last four bytes before the
 * trailer, if it has one, are room for it. `checkView`, if given, is a view of exactly the bytes before these four.
 * `bytes` must be long-lived: making a view costs more than the CRC of a short packet.
 */
export function sealIcrc(
  flow: IcrcFlow,
  bytes: Uint8Array,
  offset: number,
  length: number,
  ipId: number,
  checkView: Uint8Array | undefined,
): void {
  const congestion = bytes[offset + 4];
  const roceBytes = (congestion & BTH_TRAILER) === 0 ? length : length - trailerBytesOf(bytes, offset, length);
  const covered = roceBytes - ICRC_BYTES;
  const end = offset + covered;
  bytes[offset + 4] = 0xff;
  const seed = flow.prefix(roceBytes, ipId);
  let crc: number;
  if (covered <= CRC32_RANGE_BYTES) crc = crc32PacketSigned(bytes, offset, covered, seed);
  else if (checkView === undefined) crc = crc32(bytes.subarray(offset, end), seed);
  else crc = crc32At(bytes, offset, covered, seed, checkView);
  bytes[offset + 4] = congestion;
  storeIcrc(bytes, end, crc);
}

/**
 * The same for a packet without trailer that consists of `bytes[offset, offset + headerBytes)`,
 * `data[dataOffset, dataOffset + dataBytes)` and the ICRC, which is stored at
 * `bytes[icrcOffset]`. `data` lives long.
 */
export function sealIcrcAround(
  flow: IcrcFlow,
  bytes: Uint8Array,
  offset: number,
  headerBytes: number,
  icrcOffset: number,
  ipId: number,
  data: Uint8Array,
  dataOffset: number,
  dataBytes: number,
): void {
  const congestion = bytes[offset + 4];
  bytes[offset + 4] = 0xff;
  const roceBytes = headerBytes + dataBytes + ICRC_BYTES;
  const seed = crc32PacketSigned(bytes, offset, headerBytes, flow.prefix(roceBytes, ipId));
  bytes[offset + 4] = congestion;
  storeIcrc(bytes, icrcOffset, crc32At(data, dataOffset, dataBytes, seed));
}

function storeIcrc(bytes: Uint8Array, at: number, crc: number): void {
  bytes[at] = crc;
  bytes[at + 1] = crc >>> 8;
  bytes[at + 2] = crc >>> 16;
  bytes[at + 3] = crc >>> 24;
}

/**
 * Checks the packet `bytes[offset, offset + udpPayloadBytes)`, with or without trailer: ICRC_OK, ICRC_OK_ID_SOLVED
 * (identification in `flow.solvedId`) or ICRC_BAD.
 * `ipId` is the IPv4 identification, or {@link IP_ID_UNKNOWN}: then the likeliest is tried and any other solved for; or
 * {@link IP_ID_PROTECTED}, and nothing is checked. Writes to BTH byte 4 and restores it.
 */
export function checkIcrc(
  flow: IcrcFlow,
  bytes: Uint8Array,
  offset: number,
  udpPayloadBytes: number,
  ipId: number,
): number {
  if (ipId === IP_ID_PROTECTED) return ICRC_OK;
  if (udpPayloadBytes < BTH_BYTES + ICRC_BYTES) return ICRC_BAD;
  const congestion = bytes[offset + 4];
  const length =
    (congestion & BTH_TRAILER) === 0
      ? udpPayloadBytes
      : udpPayloadBytes - trailerBytesOf(bytes, offset, udpPayloadBytes);
  bytes[offset + 4] = 0xff;
  const tried = ipId < 0 ? IP_ID_UNKNOWN - ipId : ipId;
  const seed = flow.prefix(length, tried);
  let crc: number;
  if (length <= CRC32_RANGE_BYTES) crc = crc32PacketSigned(bytes, offset, length, seed);
  else if (length === bytes.length) crc = crc32(bytes, seed);
  else crc = crc32At(bytes, offset, length, seed);
  bytes[offset + 4] = congestion;
  if (crc === RESIDUE) return ICRC_OK;
  if (ipId >= 0 || flow.family === 6) return ICRC_BAD;
  const change = solveId((crc ^ RESIDUE) >>> 0, length);
  if (change < 0) return ICRC_BAD;
  flow.solvedId = tried ^ change;
  return ICRC_OK_ID_SOLVED;
}

/** Packets of a train that {@link trainHolds} takes at most: what the kernel keeps together (UDP_MAX_SEGMENTS). */
export const TRAIN_PACKETS_MAX = 64;
const maskedBytes = new Uint8Array(TRAIN_PACKETS_MAX);

/**
 * True when all packets of a train have the identifications 0, 1, 2 ... and correct ICRCs. The train has `packets` (1
 * to {@link TRAIN_PACKETS_MAX}) packets of `packetBytes` each, from `bytes[offset]` on. One CRC covers all of them,
 * because calls are expensive. A train with one wrong packet never passes. Several wrong ones
 * pass if their errors cancel, one in 2^32, as errors within a packet do. False: each has to be checked separately.
 * Writes to byte 4 of each BTH and restores it. `bytes` must be long-lived.
 */
export function trainHolds(
  flow: IcrcFlow,
  bytes: Uint8Array,
  offset: number,
  packetBytes: number,
  packets: number,
): boolean {
  let mayHold = true;
  for (let i = 0, at = offset + 4; i < packets; i++, at += packetBytes) {
    maskedBytes[i] = bytes[at];
    if ((bytes[at] & BTH_TRAILER) !== 0) mayHold = false;
    bytes[at] = 0xff;
  }
  const seed = flow.prefix(packetBytes, 0);
  const holds =
    mayHold && crc32At(bytes, offset, packets * packetBytes, seed) >>> 0 === flow.trainSum(packetBytes, packets);
  for (let i = 0, at = offset + 4; i < packets; i++, at += packetBytes) bytes[at] = maskedBytes[i];
  return holds;
}

/**
 * Corrects the ICRC of a sealed IPv4 packet `bytes[offset, offset + udpPayloadBytes)` for another identification than
 * it was made for. A wrong ICRC stays wrong.
 */
export function renumberIcrc(
  bytes: Uint8Array,
  offset: number,
  udpPayloadBytes: number,
  fromId: number,
  toId: number,
): void {
  const length = udpPayloadBytes - trailerBytesOf(bytes, offset, udpPayloadBytes);
  const change = fromId ^ toId;
  const difference = V4_ID_HIGH[change >> 8] ^ V4_ID_LOW[change & 0xff];
  const end = offset + length - ICRC_BYTES;
  const moved = multiply(difference, power(X, length - ICRC_BYTES));
  for (let i = 0; i < ICRC_BYTES; i++) bytes[end + i] ^= moved >>> (8 * i);
}

const FROM_ID_BYTES = IPV4_BYTES - 4 + UDP_BYTES;

/**
 * What the identification differs by (exclusive or) when the CRC differs by `difference`, or -1. Runs the CRC
 * register backwards over everything from the identification on: there it must hold the two bytes themselves, and
 * nothing else.
 */
function solveId(difference: number, length: number): number {
  const register = multiply(difference, inversePower(FROM_ID_BYTES + length));
  if (register > 0xffff) return -1;
  return ((register & 0xff) << 8) | (register >>> 8);
}

/** Product of two polynomials modulo the CRC's; the top bit is the coefficient of x^0, as in the register. */
function multiply(a: number, b: number): number {
  let product = 0;
  let power = b;
  for (let bit = 31; bit >= 0; bit--) {
    product ^= power & -((a >>> bit) & 1);
    power = (power >>> 1) ^ (CRC32_POLYNOMIAL & -(power & 1));
  }
  return product >>> 0;
}

const ONE = 0x80000000;
const X = 0x40000000;
/** x^-1: one step of the register takes it to {@link ONE}. */
const INVERSE_X = (((CRC32_POLYNOMIAL ^ ONE) << 1) | 1) >>> 0;

/** x^(-8 bytes): runs the register backwards over this many bytes. */
function inversePower(bytes: number): number {
  if (bytes >= INVERSE_POWERS.length) return power(INVERSE_X, bytes);
  if (INVERSE_POWERS[bytes] === 0) INVERSE_POWERS[bytes] = power(INVERSE_X, bytes);
  return INVERSE_POWERS[bytes];
}

/** Kept for every length that a path MTU of 4096 allows; 0 is not a power of x, so it marks empty entries. */
const INVERSE_POWERS = new Uint32Array(4352);

function power(base: number, bytes: number): number {
  let result = ONE;
  let factor = base;
  for (let exponent = 8 * bytes; exponent > 0; exponent >>>= 1) {
    if (exponent & 1) result = multiply(result, factor);
    factor = multiply(factor, factor);
  }
  return result;
}

/**
 * The ICRC a whole IPv4 or IPv6 packet should have and the one it has, for tools and tests. Takes every covered field
 * from the packet, also options and flags that {@link IcrcFlow} takes for granted. `udpOffset`: where the UDP header
 * is; default: behind an IPv4 header with its options, or behind an IPv6 header without extension headers. Throws
 * ERR_ROCE_MALFORMED unless it is a complete UDP packet with room for BTH and ICRC.
 */
export function icrcOfIpPacket(
  ipPacket: Uint8Array,
  udpOffset = udpOffsetOf(ipPacket),
): {
  /** Over what the packet holds, 32 bits. */
  computed: number;
  /** In its last four bytes. */
  carried: number;
} {
  const version4 = ipPacket[0] >> 4 === 4;
  const ipEnd = version4 ? readU16(ipPacket, 2) : IPV6_BYTES + readU16(ipPacket, 4);
  if (udpOffset < 0 || ipEnd > ipPacket.length || ipEnd < udpOffset + UDP_BYTES + BTH_BYTES + ICRC_BYTES) {
    throw new RoceError('ERR_ROCE_MALFORMED', 'not a complete RoCEv2 packet over IPv4 or IPv6');
  }
  const bth = udpOffset + UDP_BYTES;
  const trailerBytes = trailerBytesOf(ipPacket, bth, ipEnd - bth);
  const end = ipEnd - trailerBytes;
  const masked = Uint8Array.from(ipPacket.subarray(0, end - ICRC_BYTES));
  maskIp(masked);
  if (trailerBytes > 0) setLengths(masked, udpOffset, end);
  masked[udpOffset + 6] = 0xff;
  masked[udpOffset + 7] = 0xff;
  masked[udpOffset + UDP_BYTES + 4] = 0xff;
  const computed = crc32(masked, crc32(new Uint8Array(8).fill(0xff)));
  const tail = ipPacket.subarray(end - ICRC_BYTES, end);
  return { computed, carried: (tail[0] | (tail[1] << 8) | (tail[2] << 16) | (tail[3] << 24)) >>> 0 };
}

function udpOffsetOf(ipPacket: Uint8Array): number {
  const version = ipPacket[0] >> 4;
  if (version === 4) return ipPacket[9] === IP_PROTOCOL_UDP ? (ipPacket[0] & 0x0f) * 4 : -1;
  return version === 6 && ipPacket[6] === IP_PROTOCOL_UDP ? IPV6_BYTES : -1;
}

function setLengths(ipPacket: Uint8Array, udpOffset: number, end: number): void {
  if (ipPacket[0] >> 4 === 4) writeU16(ipPacket, 2, end);
  else writeU16(ipPacket, 4, end - IPV6_BYTES);
  writeU16(ipPacket, udpOffset + 4, end - udpOffset);
}
