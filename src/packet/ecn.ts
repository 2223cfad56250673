/**
 * Explicit Congestion Notification (RFC 3168) and DSCP (RFC 2474) in place: how a switch changes a packet.
 * The ICRC leaves out TOS, traffic class and header checksum, so that a mark does not break it.
 */

import { readU16, writeU16 } from '../core/bytes.js';

/** The sender does not take part: routers drop instead of marking. */
export const ECN_NOT_ECT = 0;
/** ECN-Capable Transport (0): routers may mark the packet instead of dropping it. */
export const ECN_ECT0 = 2;
/** Congestion Experienced, in the low two bits of TOS / traffic class. */
export const ECN_CE = 3;

export function readEcn(b: Uint8Array, ip: number): number {
  return readTrafficClass(b, ip) & ECN_CE;
}

/** Writes Congestion Experienced into the IPv4 or IPv6 header at `ip`. */
export function writeCe(b: Uint8Array, ip: number): void {
  writeTrafficClass(b, ip, readTrafficClass(b, ip) | ECN_CE);
}

/**
 * Writes TOS or traffic class, DSCP in its upper six bits, into the IPv4 or IPv6 header at `ip`. The IPv4 checksum is
 * updated by the difference (RFC 1624, eqn 3).
 */
export function writeTrafficClass(b: Uint8Array, ip: number, trafficClass: number): void {
  if (b[ip] >> 4 === 6) {
    b[ip] = (b[ip] & 0xf0) | (trafficClass >> 4);
    b[ip + 1] = (b[ip + 1] & 0xf) | ((trafficClass & 0xf) << 4);
    return;
  }
  const before = readU16(b, ip);
  b[ip + 1] = trafficClass;
  let sum = (~readU16(b, ip + 10) & 0xffff) + (~before & 0xffff) + readU16(b, ip);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  writeU16(b, ip + 10, ~sum & 0xffff);
}

function readTrafficClass(b: Uint8Array, ip: number): number {
  return b[ip] >> 4 === 4 ? b[ip + 1] : ((b[ip] & 0xf) << 4) | (b[ip + 1] >> 4);
}
