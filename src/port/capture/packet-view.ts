/**
 * Where the headers of a captured packet are. Lenient where the NIC's parser is strict: a wrong length, an IP option or
 * an extension header is what the rules of an audit look for. One record is filled again for every packet.
 */

import { readU16 } from '../../core/bytes.js';
import { IP_PROTOCOL_UDP, IPV4_BYTES } from '../../packet/ipv4.js';
import { IPV6_BYTES } from '../../packet/ipv6.js';
import { RocePacket } from '../../packet/roce.js';
import { UDP_BYTES } from '../../packet/udp.js';
import type { CapturedPacket } from './captured-packet.js';
import { CUT_BEFORE_IP, IN_TUNNEL, ipOffsetOf, ROCE_V1, UNKNOWN_LINK_TYPE } from './link-layer.js';

/** Kinds of captured packets. */
export const SEEN = { UDP: 0, OTHER: 1, TUNNEL: 2, CUT: 3, UNKNOWN_LINK: 4, ROCE_V1: 5 } as const;

const MORE_FRAGMENTS_OR_OFFSET = 0x3fff;
const FRAGMENT_OFFSET = 0x1fff;
const DONT_FRAGMENT = 0x4000;
const VXLAN_PORT = 4789;
const GENEVE_PORT = 6081;
/** IP in IP, IPv6, GRE, ESP. */
const TUNNEL_PROTOCOLS = new Set([4, 41, 47, 50]);
const FRAGMENT_HEADER = 44;
const AUTHENTICATION_HEADER = 51;
/**
 * Hop-by-hop options, routing, destination options, mobility, HIP, shim6: headers whose second byte is their length in
 * units of 8 bytes, less 8.
 */
const EXTENSION_HEADERS = new Set([0, 43, 60, 135, 139, 140]);

export class PacketView {
  /** Counts all packets of the file from 1. */
  number = 0;
  timeNs = 0;
  interfaceId = 0;
  bytes: Uint8Array = new Uint8Array(0);
  family = 0;
  ip = 0;
  udp = 0;
  ipEnd = 0;
  udpEnd = 0;
  isCut = false;
  /** The IP length is 0, for the NIC to fill in: the packet ends with the captured bytes. */
  hasNoLength = false;
  hasOptions = false;
  isWhole = true;
  hasExtensionHeaders = false;
  /** One of several that were captured as one. */
  isOfTrain = false;
  ipId = -1;
  dscp = 0;
  ecn = 0;
  sourcePort = 0;
  destinationPort = 0;
  readonly packet = new RocePacket();

  read(captured: CapturedPacket, number: number, timeNs: number): number {
    const { bytes } = captured;
    this.number = number;
    this.timeNs = timeNs;
    this.interfaceId = captured.interfaceId;
    this.bytes = bytes;
    this.isOfTrain = captured.train !== undefined;
    const ip = ipOffsetOf(captured);
    if (ip < 0) return kindWithoutIp(ip);
    if (bytes.length < ip + IPV4_BYTES) return SEEN.CUT;
    this.ip = ip;
    this.family = bytes[ip] >> 4;
    const wireEnd = Math.max(captured.originalLength, bytes.length);
    const kind = this.family === 4 ? this.#readIpv4(wireEnd) : this.family === 6 ? this.#readIpv6(wireEnd) : SEEN.OTHER;
    return kind === SEEN.UDP ? this.#readUdp() : kind;
  }

  #readIpv4(wireEnd: number): number {
    const { bytes, ip } = this;
    const headerBytes = (bytes[ip] & 0x0f) * 4;
    const protocol = bytes[ip + 9];
    if (protocol !== IP_PROTOCOL_UDP) return TUNNEL_PROTOCOLS.has(protocol) ? SEEN.TUNNEL : SEEN.OTHER;
    const fragment = readU16(bytes, ip + 6);
    if (headerBytes < IPV4_BYTES || (fragment & FRAGMENT_OFFSET) !== 0) return SEEN.OTHER;
    this.hasOptions = headerBytes > IPV4_BYTES;
    this.isWhole = (fragment & DONT_FRAGMENT) !== 0 && (fragment & MORE_FRAGMENTS_OR_OFFSET) === 0;
    this.hasExtensionHeaders = false;
    this.ipId = readU16(bytes, ip + 4);
    this.dscp = bytes[ip + 1] >> 2;
    this.ecn = bytes[ip + 1] & 3;
    this.udp = ip + headerBytes;
    const length = readU16(bytes, ip + 2);
    this.hasNoLength = length === 0;
    this.ipEnd = length === 0 ? wireEnd : ip + length;
    return SEEN.UDP;
  }

  #readIpv6(wireEnd: number): number {
    const { bytes, ip } = this;
    if (bytes.length < ip + IPV6_BYTES) return SEEN.CUT;
    let next = bytes[ip + 6];
    let at = ip + IPV6_BYTES;
    this.isWhole = true;
    for (let bytesOf = this.#extensionBytes(next, at); bytesOf > 0; bytesOf = this.#extensionBytes(next, at)) {
      if (next === FRAGMENT_HEADER) {
        if (readU16(bytes, at + 2) >> 3 !== 0) return SEEN.OTHER;
        this.isWhole = false;
      }
      next = bytes[at];
      at += bytesOf;
    }
    this.hasExtensionHeaders = at > ip + IPV6_BYTES;
    if (next !== IP_PROTOCOL_UDP) {
      if (isExtension(next)) return SEEN.CUT;
      return TUNNEL_PROTOCOLS.has(next) ? SEEN.TUNNEL : SEEN.OTHER;
    }
    const trafficClass = ((bytes[ip] & 0x0f) << 4) | (bytes[ip + 1] >> 4);
    this.hasOptions = false;
    this.ipId = -1;
    this.dscp = trafficClass >> 2;
    this.ecn = trafficClass & 3;
    this.udp = at;
    const length = readU16(bytes, ip + 4);
    this.hasNoLength = length === 0;
    this.ipEnd = length === 0 ? wireEnd : ip + IPV6_BYTES + length;
    return SEEN.UDP;
  }

  /** 0: it is not an extension header, or the capture ends before it does. */
  #extensionBytes(next: number, at: number): number {
    const { bytes } = this;
    if (!isExtension(next) || at + 8 > bytes.length) return 0;
    if (next === FRAGMENT_HEADER) return 8;
    return next === AUTHENTICATION_HEADER ? 4 * (bytes[at + 1] + 2) : 8 * (bytes[at + 1] + 1);
  }

  #readUdp(): number {
    const { bytes, udp } = this;
    if (bytes.length < udp + UDP_BYTES) return SEEN.CUT;
    this.sourcePort = readU16(bytes, udp);
    this.destinationPort = readU16(bytes, udp + 2);
    if (this.destinationPort === VXLAN_PORT || this.destinationPort === GENEVE_PORT) return SEEN.TUNNEL;
    const length = readU16(bytes, udp + 4);
    this.udpEnd = length === 0 && this.hasNoLength ? this.ipEnd : udp + length;
    this.isCut = Math.max(this.udpEnd, this.ipEnd) > bytes.length;
    return SEEN.UDP;
  }
}

function isExtension(next: number): boolean {
  return EXTENSION_HEADERS.has(next) || next === FRAGMENT_HEADER || next === AUTHENTICATION_HEADER;
}

function kindWithoutIp(offset: number): number {
  switch (offset) {
    case IN_TUNNEL:
      return SEEN.TUNNEL;
    case UNKNOWN_LINK_TYPE:
      return SEEN.UNKNOWN_LINK;
    case ROCE_V1:
      return SEEN.ROCE_V1;
    case CUT_BEFORE_IP:
      return SEEN.CUT;
    default:
      return SEEN.OTHER;
  }
}
