/**
 * IPv6 neighbour discovery (RFC 4861 §4.3, §4.4, §7.1): solicitation and advertisement, as far as an endpoint needs
 * them. Both are written as whole IPv6 packets, because the ICMPv6 checksum covers the addresses.
 */

import { readU16, writeU16, writeU32 } from '../core/bytes.js';
import { addWords, finishChecksum } from './checksum.js';
import { MAC_BYTES } from './ethernet.js';
import { IPV6_BYTES, IPV6_SOURCE_OFFSET, pseudoHeaderSumV6, writeIpv6 } from './ipv6.js';

/** IPv6 next header of ICMPv6 (IANA). */
export const IP_PROTOCOL_ICMPV6 = 58;
/** ICMPv6 type of a question (RFC 4861 §4.3). */
export const NEIGHBOR_SOLICITATION = 135;
/** ICMPv6 type of an answer or announcement (RFC 4861 §4.4). */
export const NEIGHBOR_ADVERTISEMENT = 136;

const ICMP_BYTES = 24;
/** Type, length in units of eight bytes, MAC address. */
const OPTION_BYTES = 8;
const OPTION_SOURCE_MAC = 1;
const OPTION_TARGET_MAC = 2;
/** Length of either packet, IPv6 header included. */
export const NDP_BYTES: number = IPV6_BYTES + ICMP_BYTES + OPTION_BYTES;

/** Neighbour discovery never crosses a router: only packets with an undecremented hop limit count. */
const HOP_LIMIT = 255;
const ADVERTISEMENT_SOLICITED = 0x40000000;
const ADVERTISEMENT_OVERRIDE = 0x20000000;

const MULTICAST_FIRST_BYTE = 0xff;
/** ff02::1 */
export const ALL_NODES: Uint8Array = Uint8Array.of(MULTICAST_FIRST_BYTE, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);

/** A parsed solicitation or advertisement; addresses are copies in network order. */
export class NdpPacket {
  /** {@link NEIGHBOR_SOLICITATION} or {@link NEIGHBOR_ADVERTISEMENT}. */
  type = 0;
  /** 16 bytes of the IPv6 header; all zero in a question by a station without an address. */
  readonly sourceIp = new Uint8Array(16);
  /** 16 bytes: the address that is queried or announced. */
  readonly targetIp = new Uint8Array(16);
  /** The link-layer address option: of the asker in a solicitation, of the target in an advertisement. */
  readonly mac = new Uint8Array(MAC_BYTES);
  /** Whether the packet has the option; else `mac` is meaningless. */
  hasMac = false;
}

/** The multicast group that the owner of `ip` listens on: ff02::1:ff00:0/104 with the low 24 bits of the address. */
export function solicitedNodeAddress(ip: Uint8Array): Uint8Array {
  return Uint8Array.of(0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, ip[13], ip[14], ip[15]);
}

/** The Ethernet address of an IPv6 multicast group (RFC 2464 §7). */
export function multicastMac(group: Uint8Array): Uint8Array {
  return Uint8Array.of(0x33, 0x33, group[12], group[13], group[14], group[15]);
}

/**
 * Asks who has `targetIp`; send it to the {@link multicastMac} of the {@link solicitedNodeAddress}. Returns the offset
 * after it.
 */
export function writeNeighborSolicitation(
  b: Uint8Array,
  o: number,
  sourceIp: Uint8Array,
  sourceMac: Uint8Array,
  targetIp: Uint8Array,
): number {
  const group = solicitedNodeAddress(targetIp);
  return writeNdp(b, o, NEIGHBOR_SOLICITATION, sourceIp, group, 0, targetIp, OPTION_SOURCE_MAC, sourceMac);
}

/**
 * Announces `sourceIp` at `sourceMac`: the answer to a solicitation from `destinationIp`, or unsolicited to a group
 * (RFC 4861 §7.2.6). Returns the offset after it.
 */
export function writeNeighborAdvertisement(
  b: Uint8Array,
  o: number,
  sourceIp: Uint8Array,
  sourceMac: Uint8Array,
  destinationIp: Uint8Array,
): number {
  const isAnswer = destinationIp[0] !== MULTICAST_FIRST_BYTE;
  const flags = ADVERTISEMENT_OVERRIDE | (isAnswer ? ADVERTISEMENT_SOLICITED : 0);
  return writeNdp(b, o, NEIGHBOR_ADVERTISEMENT, sourceIp, destinationIp, flags, sourceIp, OPTION_TARGET_MAC, sourceMac);
}

function writeNdp(
  b: Uint8Array,
  o: number,
  type: number,
  sourceIp: Uint8Array,
  destinationIp: Uint8Array,
  flags: number,
  targetIp: Uint8Array,
  option: number,
  mac: Uint8Array,
): number {
  const bytes = ICMP_BYTES + OPTION_BYTES;
  const icmp = writeIpv6(b, o, sourceIp, destinationIp, IP_PROTOCOL_ICMPV6, 0, 0, HOP_LIMIT, bytes);
  b[icmp] = type;
  b[icmp + 1] = 0;
  writeU16(b, icmp + 2, 0);
  writeU32(b, icmp + 4, flags);
  b.set(targetIp, icmp + 8);
  b[icmp + ICMP_BYTES] = option;
  b[icmp + ICMP_BYTES + 1] = OPTION_BYTES / 8;
  b.set(mac, icmp + ICMP_BYTES + 2);
  writeU16(b, icmp + 2, icmpChecksum(b, o, bytes));
  return icmp + bytes;
}

/**
 * Reads the IPv6 packet at `o` into `out`; false when it is not a complete and valid solicitation or advertisement.
 */
export function parseNdp(b: Uint8Array, o: number, length: number, out: NdpPacket): boolean {
  if (length < IPV6_BYTES + ICMP_BYTES || b[o] >> 4 !== 6) return false;
  const bytes = readU16(b, o + 4);
  if (b[o + 6] !== IP_PROTOCOL_ICMPV6 || b[o + 7] !== HOP_LIMIT) return false;
  if (bytes < ICMP_BYTES || bytes > length - IPV6_BYTES) return false;
  const icmp = o + IPV6_BYTES;
  const type = b[icmp];
  if ((type !== NEIGHBOR_SOLICITATION && type !== NEIGHBOR_ADVERTISEMENT) || b[icmp + 1] !== 0) return false;
  if (icmpChecksum(b, o, bytes) !== 0) return false;
  out.type = type;
  out.sourceIp.set(b.subarray(o + IPV6_SOURCE_OFFSET, o + IPV6_SOURCE_OFFSET + 16));
  out.targetIp.set(b.subarray(icmp + 8, icmp + ICMP_BYTES));
  return readMacOption(b, icmp + ICMP_BYTES, icmp + bytes, out);
}

/** Walks the options; false when one has no length or runs over the end. */
function readMacOption(b: Uint8Array, start: number, end: number, out: NdpPacket): boolean {
  const wanted = out.type === NEIGHBOR_SOLICITATION ? OPTION_SOURCE_MAC : OPTION_TARGET_MAC;
  out.hasMac = false;
  for (let o = start; o < end; ) {
    const optionBytes = o + OPTION_BYTES <= end ? b[o + 1] * 8 : 0;
    if (optionBytes === 0 || o + optionBytes > end) return false;
    if (b[o] === wanted) {
      out.mac.set(b.subarray(o + 2, o + 2 + MAC_BYTES));
      out.hasMac = true;
    }
    o += optionBytes;
  }
  return true;
}

function icmpChecksum(b: Uint8Array, ipOffset: number, bytes: number): number {
  const pseudo = pseudoHeaderSumV6(b, ipOffset, IP_PROTOCOL_ICMPV6, bytes);
  return finishChecksum(addWords(b, ipOffset + IPV6_BYTES, bytes, pseudo));
}
