/**
 * Parses an Ethernet frame down to the UDP payload. Strict and total, like the parser of roce.ts: for any bytes it
 * returns a reason, reads nothing outside its range and allocates nothing. The UDP checksum is not checked: the ICRC
 * covers more.
 */

import { readU16 } from '../core/bytes.js';
import {
  ETHERNET_BYTES,
  ETHERTYPE_IPV4,
  ETHERTYPE_IPV6,
  ETHERTYPE_VLAN,
  MAC_BYTES,
  VLAN_TAG_BYTES,
} from './ethernet.js';
import { IP_PROTOCOL_UDP, IPV4_BYTES, isIpv4ChecksumGood } from './ipv4.js';
import { IPV6_BYTES, IPV6_DESTINATION_OFFSET, IPV6_SOURCE_OFFSET } from './ipv6.js';
import { UDP_BYTES } from './udp.js';

/** The frame carries a UDP datagram, and all of {@link FrameInfo} is valid. */
export const FRAME_OK = 0;
/** Another EtherType than IPv4 and IPv6: ARP, MAC control. */
export const FRAME_NOT_IP = 2;
/** An IP packet with another payload than UDP: ICMPv6, TCP. */
export const FRAME_NOT_UDP = 8;
const TOO_SHORT = 1;
const BAD_IP_VERSION = 3;
const IP_OPTIONS = 4;
const BAD_IP_LENGTH = 5;
const BAD_IP_CHECKSUM = 6;
const IP_FRAGMENT = 7;
const BAD_UDP_LENGTH = 9;

/**
 * Bytes that a frame without check sequence takes on the link besides its own: preamble, FCS and the gap to the next
 * frame.
 */
export const ETHERNET_LINK_BYTES: number = 8 + 4 + 12;
const ETHERNET_OVERHEAD_BYTES = ETHERNET_BYTES + ETHERNET_LINK_BYTES;

/** Bytes that a UDP payload takes on the link besides its own: Ethernet with preamble and gap, IP, UDP. */
export function linkOverheadBytes(family: 4 | 6): number {
  return ETHERNET_OVERHEAD_BYTES + (family === 4 ? IPV4_BYTES : IPV6_BYTES) + UDP_BYTES;
}

/** What {@link parseFrame} returns, by index. Names are stable: they are counter names. */
export const FRAME_REASONS: readonly string[] = [
  'ok',
  'frame_too_short',
  'not_ip',
  'bad_ip_version',
  'ip_options',
  'bad_ip_length',
  'bad_ip_checksum',
  'ip_fragment',
  'not_udp',
  'bad_udp_length',
];

/**
 * Where things are in one frame; made once and filled again. Offsets count from the start of the array that was parsed.
 */
export class FrameInfo {
  /** Where the six bytes of the receiver's MAC address stand. */
  destinationMacOffset = 0;
  /** Where the six bytes of the sender's MAC address stand. */
  sourceMacOffset = 0;
  /** 0..4095, or -1 without an 802.1Q tag. */
  vlanId = -1;
  /** Priority of the tag, 0 without one. */
  pcp = 0;
  /** The EtherType, after the tag if there is one. */
  ethertype = 0;
  /** 4, 6, or 0 when the frame carries no IP. */
  family = 0;
  /** Where the Ethernet payload begins. */
  ipOffset = 0;
  /** ECN codepoint 0..3 (RFC 3168). */
  ecn = 0;
  /** Differentiated services codepoint 0..63. */
  dscp = 0;
  /** TTL or hop limit. */
  ttl = 0;
  /** IPv4 identification; 0 for IPv6. */
  ipId = 0;
  /** True for IPv6. */
  dontFragment = false;
  /** IPv4 protocol or IPv6 next header. */
  protocol = 0;
  /** Where the sender's IP address stands, `addressBytes` long. */
  sourceOffset = 0;
  /** Where the receiver's IP address stands. */
  destinationOffset = 0;
  /** 4 or 16. */
  addressBytes = 0;
  /** Where the UDP header stands. */
  udpOffset = 0;
  /** UDP port of the sender. */
  sourcePort = 0;
  /** UDP port of the receiver. */
  destinationPort = 0;
  /** Where the UDP payload begins. */
  payloadOffset = 0;
  /** Bytes of UDP payload, without padding of the frame. */
  payloadBytes = 0;
}

/**
 * Parses the frame `bytes[offset, offset + length)` (without check sequence; padding behind the IP packet is allowed)
 * into `out`. Returns {@link FRAME_OK} or an index into {@link FRAME_REASONS}. With FRAME_NOT_IP the Ethernet fields
 * are valid, with FRAME_NOT_UDP also the IP fields; otherwise `out` is meaningless unless OK. Never throws.
 */
export function parseFrame(bytes: Uint8Array, offset: number, length: number, out: FrameInfo): number {
  if (length < ETHERNET_BYTES) return TOO_SHORT;
  let ethertype = readU16(bytes, offset + 12);
  let ipOffset = offset + ETHERNET_BYTES;
  out.vlanId = -1;
  out.pcp = 0;
  if (ethertype === ETHERTYPE_VLAN) {
    if (length < ETHERNET_BYTES + VLAN_TAG_BYTES) return TOO_SHORT;
    const tag = readU16(bytes, offset + ETHERNET_BYTES);
    out.vlanId = tag & 0xfff;
    out.pcp = tag >> 13;
    ethertype = readU16(bytes, offset + ETHERNET_BYTES + 2);
    ipOffset += VLAN_TAG_BYTES;
  }
  out.destinationMacOffset = offset;
  out.sourceMacOffset = offset + MAC_BYTES;
  out.ethertype = ethertype;
  out.ipOffset = ipOffset;
  const end = offset + length;
  if (ethertype === ETHERTYPE_IPV4) return parseIpv4(bytes, ipOffset, end, out);
  if (ethertype === ETHERTYPE_IPV6) return parseIpv6(bytes, ipOffset, end, out);
  out.family = 0;
  return FRAME_NOT_IP;
}

function parseIpv4(bytes: Uint8Array, ip: number, end: number, out: FrameInfo): number {
  if (end - ip < IPV4_BYTES) return TOO_SHORT;
  if (bytes[ip] >> 4 !== 4) return BAD_IP_VERSION;
  if (bytes[ip] !== 0x45) return IP_OPTIONS;
  const total = readU16(bytes, ip + 2);
  if (total < IPV4_BYTES || total > end - ip) return BAD_IP_LENGTH;
  if (!isIpv4ChecksumGood(bytes, ip)) return BAD_IP_CHECKSUM;
  const fragment = readU16(bytes, ip + 6);
  if ((fragment & 0x3fff) !== 0) return IP_FRAGMENT;
  const tos = bytes[ip + 1];
  out.family = 4;
  out.ecn = tos & 3;
  out.dscp = tos >> 2;
  out.ttl = bytes[ip + 8];
  out.ipId = readU16(bytes, ip + 4);
  out.dontFragment = (fragment & 0x4000) !== 0;
  out.protocol = bytes[ip + 9];
  out.sourceOffset = ip + 12;
  out.destinationOffset = ip + 16;
  out.addressBytes = 4;
  return parseUdp(bytes, ip + IPV4_BYTES, total - IPV4_BYTES, out);
}

function parseIpv6(bytes: Uint8Array, ip: number, end: number, out: FrameInfo): number {
  if (end - ip < IPV6_BYTES) return TOO_SHORT;
  if (bytes[ip] >> 4 !== 6) return BAD_IP_VERSION;
  const payloadBytes = readU16(bytes, ip + 4);
  if (payloadBytes > end - ip - IPV6_BYTES) return BAD_IP_LENGTH;
  const trafficClass = ((bytes[ip] & 0x0f) << 4) | (bytes[ip + 1] >> 4);
  out.family = 6;
  out.ecn = trafficClass & 3;
  out.dscp = trafficClass >> 2;
  out.ttl = bytes[ip + 7];
  out.ipId = 0;
  out.dontFragment = true;
  out.protocol = bytes[ip + 6];
  out.sourceOffset = ip + IPV6_SOURCE_OFFSET;
  out.destinationOffset = ip + IPV6_DESTINATION_OFFSET;
  out.addressBytes = 16;
  return parseUdp(bytes, ip + IPV6_BYTES, payloadBytes, out);
}

/**
 * `available` is the length by the IP header; RoCEv2 has nothing after the UDP datagram, so both lengths must agree.
 */
function parseUdp(bytes: Uint8Array, udp: number, available: number, out: FrameInfo): number {
  if (out.protocol !== IP_PROTOCOL_UDP) return FRAME_NOT_UDP;
  if (available < UDP_BYTES || readU16(bytes, udp + 4) !== available) return BAD_UDP_LENGTH;
  out.udpOffset = udp;
  out.sourcePort = readU16(bytes, udp);
  out.destinationPort = readU16(bytes, udp + 2);
  out.payloadOffset = udp + UDP_BYTES;
  out.payloadBytes = available - UDP_BYTES;
  return FRAME_OK;
}
