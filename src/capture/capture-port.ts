/**
 * A port that also writes what passes through it to a capture: each datagram as a RAW IP packet, with the IP and UDP headers as far as
 * they are known, so that the ICRC verifies in Wireshark. Wrapped around a port only when somebody asked for a capture.
 *
 * A UDP socket hides the IPv4 identification of what it receives, and the ICRC covers it: it is computed back from the ICRC, and the
 * packet carries a comment that says so.
 */

import type { IpAddress } from '../packet/address.js';
import { checkIcrc, ICRC_BAD, ICRC_OK_ID_SOLVED, IcrcFlow } from '../packet/icrc.js';
import { IP_PROTOCOL_UDP, writeIpv4 } from '../packet/ipv4.js';
import { IPV6_BYTES, writeIpv6 } from '../packet/ipv6.js';
import { UDP_BYTES, writeUdp } from '../packet/udp.js';
import {
  IP_ID_UNKNOWN,
  type IpIdPolicy,
  type Port,
  type PortCounters,
  type RxDatagram,
  type TxBatch,
} from '../port/datagram.js';
import type { PacketSink } from './pcapng-file.js';

const HOP_LIMIT = 64;
/** Senders whose ICRC constants are remembered. */
const FLOWS_MAX = 256;

export class CapturePort implements Port {
  readonly #inner: Port;
  readonly #sink: PacketSink;
  readonly #interfaceId: number;
  readonly #wallClockNs: () => bigint;
  /** Anybody may send to a UDP port, so it takes the longest datagram there is. */
  readonly #packet = new Uint8Array(IPV6_BYTES + 0xffff);
  readonly #flows = new Map<string, IcrcFlow>();
  #onDatagram: (datagram: RxDatagram) => void;

  /**
   * Captures `inner` as interface `interfaceId` of `sink`, which must be of link type RAW and is not closed with the port.
   * `wallClockNs` gives nanoseconds since 1970.
   */
  constructor(inner: Port, sink: PacketSink, interfaceId: number, wallClockNs: () => bigint) {
    this.#inner = inner;
    this.#sink = sink;
    this.#interfaceId = interfaceId;
    this.#wallClockNs = wallClockNs;
    this.#onDatagram = inner.onDatagram;
    inner.onDatagram = (datagram) => {
      this.#captureReceived(datagram);
      this.#onDatagram(datagram);
    };
  }

  get description(): string {
    return `${this.#inner.description}, captured`;
  }

  get address(): IpAddress {
    return this.#inner.address;
  }

  get udpPort(): number {
    return this.#inner.udpPort;
  }

  get pathMtuMax(): number {
    return this.#inner.pathMtuMax;
  }

  get ipIdPolicy(): IpIdPolicy {
    return this.#inner.ipIdPolicy;
  }

  get fixedSourcePort(): number | undefined {
    return this.#inner.fixedSourcePort;
  }

  get counters(): Readonly<PortCounters> {
    return this.#inner.counters;
  }

  get receiveBudgetPackets(): number {
    return this.#inner.receiveBudgetPackets;
  }

  get onDatagram(): (datagram: RxDatagram) => void {
    return this.#onDatagram;
  }

  set onDatagram(handler: (datagram: RxDatagram) => void) {
    this.#onDatagram = handler;
  }

  get onError(): (error: Error) => void {
    return this.#inner.onError;
  }

  set onError(handler: (error: Error) => void) {
    this.#inner.onError = handler;
  }

  open(): Promise<void> {
    return this.#inner.open();
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  beginBatch(): TxBatch | undefined {
    return this.#inner.beginBatch();
  }

  sendBatch(batch: TxBatch): void {
    const timestampNs = this.#wallClockNs();
    for (let slot = 0; slot < batch.count; slot++) {
      const packet = this.#ipPacket(
        batch.sources[slot],
        batch.destinations[slot],
        batch.sourcePorts[slot],
        batch.destinationPorts[slot],
        (batch.dscps[slot] << 2) | batch.ecns[slot],
        batch.ipIds[slot],
        batch.payloadView(slot),
      );
      this.#sink.writePacket(this.#interfaceId, timestampNs, packet);
    }
    this.#inner.sendBatch(batch);
  }

  #captureReceived(datagram: RxDatagram): void {
    const { bytes, offset, length, source, destination, sourcePort, destinationPort, dscp, ecn } = datagram;
    let { ipId } = datagram;
    let comment: string | undefined;
    if (source.family === 4 && ipId === IP_ID_UNKNOWN) {
      const flow = this.#flow(datagram);
      const verdict = checkIcrc(flow, bytes, offset, length, IP_ID_UNKNOWN);
      ipId = verdict === ICRC_OK_ID_SOLVED ? flow.solvedId : 0;
      if (verdict === ICRC_OK_ID_SOLVED)
        comment = 'IPv4 identification computed from the ICRC: the socket does not show it';
      if (verdict === ICRC_BAD) comment = 'IPv4 identification unknown, and the ICRC is wrong for every value of it';
    }
    const payload = bytes.subarray(offset, offset + length);
    const packet = this.#ipPacket(source, destination, sourcePort, destinationPort, (dscp << 2) | ecn, ipId, payload);
    this.#sink.writePacket(this.#interfaceId, this.#wallClockNs(), packet, comment);
  }

  #flow({ source, destination, sourcePort, destinationPort }: RxDatagram): IcrcFlow {
    const key = `${source.text} ${destination.text} ${sourcePort} ${destinationPort}`;
    let flow = this.#flows.get(key);
    if (flow === undefined) {
      if (this.#flows.size >= FLOWS_MAX) this.#flows.clear();
      flow = new IcrcFlow(source, destination, sourcePort, destinationPort);
      this.#flows.set(key, flow);
    }
    return flow;
  }

  /** In a buffer that the next call uses again. */
  #ipPacket(
    source: IpAddress,
    destination: IpAddress,
    sourcePort: number,
    destinationPort: number,
    trafficClass: number,
    ipId: number,
    payload: Uint8Array,
  ): Uint8Array {
    const udpBytes = UDP_BYTES + payload.length;
    const [from, to] = [source.bytes, destination.bytes];
    let end =
      source.family === 4
        ? writeIpv4(this.#packet, 0, from, to, IP_PROTOCOL_UDP, trafficClass, HOP_LIMIT, ipId, udpBytes)
        : writeIpv6(this.#packet, 0, from, to, IP_PROTOCOL_UDP, trafficClass, 0, HOP_LIMIT, udpBytes);
    end = writeUdp(this.#packet, end, sourcePort, destinationPort, payload.length);
    this.#packet.set(payload, end);
    return this.#packet.subarray(0, end + payload.length);
  }
}
