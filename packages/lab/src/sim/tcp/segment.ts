/**
 * TCP segments (RFC 9293 §3.1) in Ethernet frames, as far as the model needs them: ports name the connection, and no
 * byte of the payload is looked at.
 */

import { readU16, readU32, writeU16, writeU32 } from 'rocev2/internal/core';
import {
  ETHERNET_BYTES,
  ETHERTYPE_IPV4,
  IPV4_BYTES,
  type IpAddress,
  writeEthernet,
  writeIpv4,
} from 'rocev2/internal/packet';

const IP_PROTOCOL_TCP = 6;
const HOP_LIMIT = 64;
/** The header with the timestamps that stacks of data centres send (RFC 7323 §3.2). */
const TCP_BYTES = 32;
export const SEGMENT_HEADER_BYTES: number = ETHERNET_BYTES + IPV4_BYTES + TCP_BYTES;

export interface TcpSegment {
  /** Which connection, 0..65535: both ports. */
  connection: number;
  /** First byte of the payload, counted from 0; 32 bits. */
  sequence: number;
  acknowledged: number;
  bytes: number;
}

export interface SegmentEnd {
  readonly address: IpAddress;
  readonly mac: Uint8Array;
}

export function writeSegment(
  frame: Uint8Array,
  from: SegmentEnd,
  to: SegmentEnd,
  segment: Readonly<TcpSegment>,
): number {
  const { connection, sequence, acknowledged, bytes } = segment;
  const ip = writeEthernet(frame, 0, to.mac, from.mac, ETHERTYPE_IPV4);
  const [source, destination] = [from.address.bytes, to.address.bytes];
  const tcp = writeIpv4(frame, ip, source, destination, IP_PROTOCOL_TCP, 0, HOP_LIMIT, 0, TCP_BYTES + bytes);
  writeU16(frame, tcp, connection);
  writeU16(frame, tcp + 2, connection);
  writeU32(frame, tcp + 4, sequence);
  writeU32(frame, tcp + 8, acknowledged);
  return SEGMENT_HEADER_BYTES + bytes;
}

export function readSegment(frame: Uint8Array, offset: number, length: number, into: TcpSegment): void {
  const tcp = offset + ETHERNET_BYTES + IPV4_BYTES;
  into.connection = readU16(frame, tcp);
  into.sequence = readU32(frame, tcp + 4);
  into.acknowledged = readU32(frame, tcp + 8);
  into.bytes = length - SEGMENT_HEADER_BYTES;
}
