/**
 * A port that also writes its packets to a capture, as RAW IP packets whose known header fields make the ICRC verify in
 * Wireshark. Comments mark retransmissions and congestion marks. A UDP socket hides the received IPv4 identification,
 * so it is computed back from the ICRC, with a comment.
 */

import type { IpAddress } from '../../packet/address.js';
import { checkIcrc, ICRC_BAD, ICRC_OK_ID_SOLVED } from '../../packet/icrc.js';
import { IcrcFlows } from '../../packet/icrc-flows.js';
import { IP_PROTOCOL_UDP, writeIpv4 } from '../../packet/ipv4.js';
import { IPV6_BYTES, writeIpv6 } from '../../packet/ipv6.js';
import { PARSE_OK, parseRoce, RocePacket } from '../../packet/roce.js';
import { UDP_BYTES, writeUdp, writeUdpChecksumV6 } from '../../packet/udp.js';
import { ECN_CE, IP_ID_UNKNOWN, type Port, type RxDatagram, type TxBatch } from '../datagram.js';
import { PortWrapper } from '../port-wrapper.js';
import type { PacketSink } from './pcapng-file.js';
import { SentSequences } from './sent-sequences.js';

const HOP_LIMIT = 64;

interface UdpPacket {
  readonly source: IpAddress;
  readonly destination: IpAddress;
  readonly sourcePort: number;
  readonly destinationPort: number;
  readonly trafficClass: number;
  readonly ipId: number;
  readonly payload: Uint8Array;
}

export class CapturePort extends PortWrapper {
  readonly #sink: PacketSink;
  readonly #interfaceId: number;
  readonly #wallClockNs: () => bigint;
  /** Any host may send to a UDP port, so the buffer takes the longest possible datagram. */
  readonly #packet = new Uint8Array(IPV6_BYTES + 0xffff);
  readonly #flows = new IcrcFlows();
  readonly #parsed = new RocePacket();
  readonly #sent = new SentSequences();

  constructor(inner: Port, sink: PacketSink, interfaceId: number, wallClockNs: () => bigint) {
    super(inner);
    this.#sink = sink;
    this.#interfaceId = interfaceId;
    this.#wallClockNs = wallClockNs;
  }

  override get description(): string {
    return `${this.inner.description}, captured`;
  }

  protected override receive(datagram: RxDatagram): void {
    this.#captureReceived(datagram);
    this.onDatagram(datagram);
  }

  override sendBatch(batch: TxBatch): void {
    const timestampNs = this.#wallClockNs();
    for (let slot = 0; slot < batch.count; slot++) {
      const packet = this.#ipPacket({
        source: batch.sources[slot],
        destination: batch.destinations[slot],
        sourcePort: batch.sourcePorts[slot],
        destinationPort: batch.destinationPorts[slot],
        trafficClass: (batch.dscps[slot] << 2) | batch.ecns[slot],
        ipId: batch.ipIds[slot],
        payload: batch.payloadView(slot),
      });
      this.#sink.writePacket(this.#interfaceId, timestampNs, packet, this.#remarkOnSent(batch, slot));
    }
    this.inner.sendBatch(batch);
  }

  #remarkOnSent(batch: TxBatch, slot: number): string | undefined {
    if (parseRoce(batch.slab, batch.payloadOffset(slot), batch.lengths[slot], this.#parsed) !== PARSE_OK)
      return undefined;
    this.#sent.take(this.#parsed);
    return this.#sent.isRepeated ? 'sent again' : undefined;
  }

  #captureReceived(datagram: RxDatagram): void {
    const { bytes, offset, length, source, destination, sourcePort, destinationPort, dscp, ecn } = datagram;
    let { ipId } = datagram;
    const comments = ecn === ECN_CE ? ['marked on its way: congestion experienced'] : [];
    if (source.family === 4 && ipId < 0) {
      const flow = this.#flows.of(source, destination, sourcePort, destinationPort);
      const verdict = checkIcrc(flow, bytes, offset, length, ipId);
      ipId = verdict === ICRC_OK_ID_SOLVED ? flow.solvedId : IP_ID_UNKNOWN - ipId;
      if (verdict === ICRC_OK_ID_SOLVED)
        comments.push('IPv4 identification computed from the ICRC: the socket does not show it');
      if (verdict === ICRC_BAD) {
        comments.push('IPv4 identification unknown, and the ICRC is wrong for every value of it');
      }
    }
    const payload = bytes.subarray(offset, offset + length);
    const packet = this.#ipPacket({
      source,
      destination,
      sourcePort,
      destinationPort,
      trafficClass: (dscp << 2) | ecn,
      ipId,
      payload,
    });
    this.#sink.writePacket(this.#interfaceId, this.#wallClockNs(), packet, comments.join('; ') || undefined);
  }

  #ipPacket({ source, destination, sourcePort, destinationPort, trafficClass, ipId, payload }: UdpPacket): Uint8Array {
    const udpBytes = UDP_BYTES + payload.length;
    const [from, to] = [source.bytes, destination.bytes];
    let end =
      source.family === 4
        ? writeIpv4(this.#packet, 0, from, to, IP_PROTOCOL_UDP, trafficClass, HOP_LIMIT, ipId, udpBytes)
        : writeIpv6(this.#packet, 0, from, to, IP_PROTOCOL_UDP, trafficClass, 0, HOP_LIMIT, udpBytes);
    const udpOffset = end;
    end = writeUdp(this.#packet, end, sourcePort, destinationPort, payload.length);
    this.#packet.set(payload, end);
    const packet = this.#packet.subarray(0, end + payload.length);
    // The kernel fills it in over IPv6, where zero is no checksum that Wireshark takes without a remark.
    if (source.family === 6) writeUdpChecksumV6(packet, 0, udpOffset);
    return packet;
  }
}
