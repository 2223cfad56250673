import type { IpAddress } from '../packet/address.js';
import { ETHERNET_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6, writeEthernet } from '../packet/ethernet.js';
import type { FrameInfo } from '../packet/frame.js';
import { IP_PROTOCOL_UDP, IPV4_BYTES, writeIpv4 } from '../packet/ipv4.js';
import { IPV6_BYTES, writeIpv6 } from '../packet/ipv6.js';
import { UDP_BYTES, writeUdp } from '../packet/udp.js';
import { ROCE_UDP_PORT, type RxDatagram, type TxBatch } from './datagram.js';

const HOP_LIMIT = 64;

export function frameHeaderBytes(family: 4 | 6): number {
  return ETHERNET_BYTES + (family === 4 ? IPV4_BYTES : IPV6_BYTES) + UDP_BYTES;
}

/**
 * Writes them in front of the payload of `slot`: DF is set, the UDP checksum is 0 in both families, as Linux's rdma_rxe
 * sends it.
 */
export function writeFrameHeaders(
  batch: TxBatch,
  slot: number,
  sourceMac: Uint8Array,
  destinationMac: Uint8Array,
): void {
  const { slab } = batch;
  const source = batch.sources[slot];
  const destination = batch.destinations[slot];
  const payloadBytes = batch.lengths[slot];
  const trafficClass = (batch.dscps[slot] << 2) | batch.ecns[slot];
  const isV4 = source.family === 4;
  const udpBytes = UDP_BYTES + payloadBytes;
  const start = batch.payloadOffset(slot) - frameHeaderBytes(source.family);
  let o = writeEthernet(slab, start, destinationMac, sourceMac, isV4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
  if (isV4) {
    const ipId = batch.ipIds[slot];
    o = writeIpv4(slab, o, source.bytes, destination.bytes, IP_PROTOCOL_UDP, trafficClass, HOP_LIMIT, ipId, udpBytes);
  } else {
    o = writeIpv6(slab, o, source.bytes, destination.bytes, IP_PROTOCOL_UDP, trafficClass, 0, HOP_LIMIT, udpBytes);
  }
  writeUdp(slab, o, batch.sourcePorts[slot], batch.destinationPorts[slot], payloadBytes);
}

export function newRxDatagram(address: IpAddress): RxDatagram {
  return {
    bytes: new Uint8Array(0),
    offset: 0,
    length: 0,
    source: address,
    sourcePort: 0,
    destination: address,
    destinationPort: ROCE_UDP_PORT,
    ecn: 0,
    dscp: 0,
    ipId: 0,
  };
}

export function readFrame(rx: RxDatagram, bytes: Uint8Array, frame: FrameInfo, source: IpAddress): void {
  rx.bytes = bytes;
  rx.offset = frame.payloadOffset;
  rx.length = frame.payloadBytes;
  rx.source = source;
  rx.sourcePort = frame.sourcePort;
  rx.ecn = frame.ecn;
  rx.dscp = frame.dscp;
  rx.ipId = frame.ipId;
}
