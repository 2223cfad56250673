/**
 * Lenient where the NIC's parser is strict: a wrong length, an IP option or an extension header is what the rules look
 * for. One record is filled again for every packet.
 */

import { type CapturedPacket, IN_TUNNEL, ipOffsetOf, NO_IP } from 'rocev2/internal/capture';
import { readU16 } from 'rocev2/internal/core';
import { IP_PROTOCOL_UDP, IPV4_BYTES, IPV6_BYTES, RocePacket, UDP_BYTES } from 'rocev2/internal/packet';

export const SEEN_UDP = 0;
export const SEEN_OTHER = 1;
export const SEEN_TUNNEL = 2;
export const SEEN_CUT = 3;
export const SEEN_UNKNOWN_LINK = 4;

const MORE_FRAGMENTS_OR_OFFSET = 0x3fff;
const FRAGMENT_OFFSET = 0x1fff;
const DONT_FRAGMENT = 0x4000;
const VXLAN_PORT = 4789;
const TUNNEL_PROTOCOLS = new Set([4, 41, 47]);
/**
 * Hop-by-hop options, routing, destination options: headers whose second byte is their length in units of 8 bytes, less
 * 8.
 */
const EXTENSION_HEADERS = new Set([0, 43, 60]);

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
  hasOptions = false;
  isWhole = true;
  hasExtensionHeaders = false;
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
    const ip = ipOffsetOf(captured);
    if (ip < 0) return ip === NO_IP ? SEEN_OTHER : ip === IN_TUNNEL ? SEEN_TUNNEL : SEEN_UNKNOWN_LINK;
    if (bytes.length < ip + IPV4_BYTES) return SEEN_CUT;
    this.ip = ip;
    this.family = bytes[ip] >> 4;
    const kind = this.family === 4 ? this.#readIpv4() : this.family === 6 ? this.#readIpv6() : SEEN_OTHER;
    return kind === SEEN_UDP ? this.#readUdp() : kind;
  }

  #readIpv4(): number {
    const { bytes, ip } = this;
    const headerBytes = (bytes[ip] & 0x0f) * 4;
    const protocol = bytes[ip + 9];
    if (protocol !== IP_PROTOCOL_UDP) return TUNNEL_PROTOCOLS.has(protocol) ? SEEN_TUNNEL : SEEN_OTHER;
    const fragment = readU16(bytes, ip + 6);
    if (headerBytes < IPV4_BYTES || (fragment & FRAGMENT_OFFSET) !== 0) return SEEN_OTHER;
    this.hasOptions = headerBytes > IPV4_BYTES;
    this.isWhole = (fragment & DONT_FRAGMENT) !== 0 && (fragment & MORE_FRAGMENTS_OR_OFFSET) === 0;
    this.hasExtensionHeaders = false;
    this.ipId = readU16(bytes, ip + 4);
    this.dscp = bytes[ip + 1] >> 2;
    this.ecn = bytes[ip + 1] & 3;
    this.udp = ip + headerBytes;
    this.ipEnd = ip + readU16(bytes, ip + 2);
    return SEEN_UDP;
  }

  #readIpv6(): number {
    const { bytes, ip } = this;
    if (bytes.length < ip + IPV6_BYTES) return SEEN_CUT;
    let next = bytes[ip + 6];
    let at = ip + IPV6_BYTES;
    this.hasExtensionHeaders = false;
    while (EXTENSION_HEADERS.has(next) && at + 8 <= bytes.length) {
      this.hasExtensionHeaders = true;
      next = bytes[at];
      at += 8 * (bytes[at + 1] + 1);
    }
    if (next !== IP_PROTOCOL_UDP) return TUNNEL_PROTOCOLS.has(next) ? SEEN_TUNNEL : SEEN_OTHER;
    const trafficClass = ((bytes[ip] & 0x0f) << 4) | (bytes[ip + 1] >> 4);
    this.hasOptions = false;
    this.isWhole = true;
    this.ipId = -1;
    this.dscp = trafficClass >> 2;
    this.ecn = trafficClass & 3;
    this.udp = at;
    this.ipEnd = ip + IPV6_BYTES + readU16(bytes, ip + 4);
    return SEEN_UDP;
  }

  #readUdp(): number {
    const { bytes, udp } = this;
    if (bytes.length < udp + UDP_BYTES) return SEEN_CUT;
    this.sourcePort = readU16(bytes, udp);
    this.destinationPort = readU16(bytes, udp + 2);
    if (this.destinationPort === VXLAN_PORT) return SEEN_TUNNEL;
    this.udpEnd = udp + readU16(bytes, udp + 4);
    this.isCut = Math.max(this.udpEnd, this.ipEnd) > bytes.length;
    return SEEN_UDP;
  }
}
