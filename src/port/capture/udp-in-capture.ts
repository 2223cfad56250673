/**
 * The UDP datagram in a captured packet. Lenient: a datagram cut short by the capture is returned as far as it goes,
 * and one whose headers do not agree with a reason.
 */

import { IpAddress } from '../../packet/address.js';
import { UDP_BYTES } from '../../packet/udp.js';
import type { CapturedPacket, TrainPlace } from './captured-packet.js';
import { PacketView, SEEN } from './packet-view.js';

const IPV4_SOURCE_OFFSET = 12;
const IPV6_SOURCE_OFFSET = 8;

export interface CapturedDatagram {
  readonly source: IpAddress;
  readonly destination: IpAddress;
  readonly sourcePort: number;
  readonly destinationPort: number;
  /** ECN codepoint 0..3. */
  readonly ecn: number;
  /** From the IP header on, without link-layer padding; shorter than the header says when the capture cut it. */
  readonly ipPacket: Uint8Array;
  /** Offset of the UDP header in {@link ipPacket}. */
  readonly udpOffset: number;
  readonly payload: Uint8Array;
  readonly payloadBytes: number;
  /** Why it cannot be decoded. */
  readonly malformed?: 'lengths_differ' | 'fragment' | 'merged_packets' | undefined;
  readonly train?: TrainPlace | undefined;
}

const view = new PacketView();

export function udpOf(packet: CapturedPacket): CapturedDatagram | undefined {
  if (view.read(packet, 0, 0) !== SEEN.UDP) return undefined;
  const { bytes, ip, udp, ipEnd, udpEnd, family, isWhole, ecn, sourcePort, destinationPort } = view;
  const { train } = packet;
  const isFragment = !isWhole && ipEnd !== udpEnd;
  const malformed =
    train?.count === 0 ? 'merged_packets' : isFragment ? 'fragment' : ipEnd !== udpEnd ? 'lengths_differ' : undefined;
  const payloadStart = udp + UDP_BYTES;
  const ipPacket = bytes.subarray(ip, ipEnd); // without the padding of short frames
  const [sourceOffset, addressBytes] = family === 4 ? [IPV4_SOURCE_OFFSET, 4] : [IPV6_SOURCE_OFFSET, 16];
  const destinationOffset = sourceOffset + addressBytes;
  return {
    source: IpAddress.fromBytes(ipPacket.subarray(sourceOffset, destinationOffset)),
    destination: IpAddress.fromBytes(ipPacket.subarray(destinationOffset, destinationOffset + addressBytes)),
    sourcePort,
    destinationPort,
    ecn,
    ipPacket,
    udpOffset: udp - ip,
    payload: bytes.subarray(payloadStart, ipEnd),
    payloadBytes: Math.max(0, ipEnd - payloadStart),
    malformed,
    train,
  };
}
