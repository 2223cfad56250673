/** Datagrams of simulations as the packets of a capture file: RAW IP, with the headers that the ICRC was made for. */

import { IP_PROTOCOL_UDP, writeIpv4 } from '../../src/packet/ipv4.js';
import { writeIpv6 } from '../../src/packet/ipv6.js';
import { UDP_BYTES, writeUdp } from '../../src/packet/udp.js';
import type { CapturedPacket } from '../../src/port/capture/captured-packet.js';
import { LINKTYPE_RAW } from '../../src/port/capture/pcapng-blocks.js';
import type { RxDatagram } from '../../src/port/datagram.js';

const HOP_LIMIT = 64;
const HEADER_BYTES_MAX = 48;

export function capturedDatagram(datagram: RxDatagram, timeNs: number): CapturedPacket {
  const { bytes, offset, length, source, destination, dscp, ecn, ipId } = datagram;
  const packet = new Uint8Array(HEADER_BYTES_MAX + length);
  const trafficClass = (dscp << 2) | ecn;
  const [from, to, udpBytes] = [source.bytes, destination.bytes, UDP_BYTES + length];
  const udp =
    source.family === 4
      ? writeIpv4(packet, 0, from, to, IP_PROTOCOL_UDP, trafficClass, HOP_LIMIT, ipId, udpBytes)
      : writeIpv6(packet, 0, from, to, IP_PROTOCOL_UDP, trafficClass, 0, HOP_LIMIT, udpBytes);
  const payload = writeUdp(packet, udp, datagram.sourcePort, datagram.destinationPort, length);
  packet.set(bytes.subarray(offset, offset + length), payload);
  const whole = packet.subarray(0, payload + length);
  return {
    timestampNs: BigInt(Math.round(timeNs)),
    interfaceId: 0,
    linkType: LINKTYPE_RAW,
    bytes: whole,
    originalLength: whole.length,
    comment: undefined,
  };
}
