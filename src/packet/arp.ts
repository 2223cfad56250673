/** ARP for IPv4 over Ethernet (RFC 826): requests and replies of an endpoint. */

import { readU16, writeU16 } from '../core/bytes.js';
import { ETHERTYPE_IPV4, MAC_BYTES } from './ethernet.js';

/** Length of a packet for IPv4 over Ethernet. */
export const ARP_BYTES = 28;
/** Operation code: asks for the station that has `targetIp`. */
export const ARP_REQUEST = 1;
/** Operation code: the sender has `senderIp`. */
export const ARP_REPLY = 2;
const HARDWARE_ETHERNET = 1;

/** A parsed ARP packet; addresses are copies in network order. */
export class ArpPacket {
  /** {@link ARP_REQUEST} or {@link ARP_REPLY}. */
  operation = 0;
  /** Six bytes. */
  readonly senderMac = new Uint8Array(MAC_BYTES);
  /** Four bytes. */
  readonly senderIp = new Uint8Array(4);
  /** Six bytes, zero in a request. */
  readonly targetMac = new Uint8Array(MAC_BYTES);
  /** Four bytes. */
  readonly targetIp = new Uint8Array(4);
}

/** Writes the packet after an Ethernet header; returns the offset after it. A request carries a zero `targetMac`. */
export function writeArp(
  b: Uint8Array,
  o: number,
  operation: number,
  senderMac: Uint8Array,
  senderIp: Uint8Array,
  targetMac: Uint8Array,
  targetIp: Uint8Array,
): number {
  writeU16(b, o, HARDWARE_ETHERNET);
  writeU16(b, o + 2, ETHERTYPE_IPV4);
  b[o + 4] = MAC_BYTES;
  b[o + 5] = 4;
  writeU16(b, o + 6, operation);
  b.set(senderMac, o + 8);
  b.set(senderIp, o + 14);
  b.set(targetMac, o + 18);
  b.set(targetIp, o + 24);
  return o + ARP_BYTES;
}

/** Reads the packet at `o` into `out`; false when it is not a complete ARP packet for IPv4 over Ethernet. */
export function parseArp(b: Uint8Array, o: number, length: number, out: ArpPacket): boolean {
  if (length < ARP_BYTES) return false;
  if (readU16(b, o) !== HARDWARE_ETHERNET || readU16(b, o + 2) !== ETHERTYPE_IPV4) return false;
  if (b[o + 4] !== MAC_BYTES || b[o + 5] !== 4) return false;
  out.operation = readU16(b, o + 6);
  out.senderMac.set(b.subarray(o + 8, o + 14));
  out.senderIp.set(b.subarray(o + 14, o + 18));
  out.targetMac.set(b.subarray(o + 18, o + 24));
  out.targetIp.set(b.subarray(o + 24, o + 28));
  return out.operation === ARP_REQUEST || out.operation === ARP_REPLY;
}
