/** The tester's packets go out through a port without a NIC, because a tester has to send what no NIC would. */

import type { Clock } from 'rocev2/internal/core';
import {
  checkIcrc,
  ICRC_BAD,
  ICRC_BYTES,
  IcrcFlow,
  type IpAddress,
  PARSE_OK,
  parseRoce,
  RocePacket,
  sealIcrc,
} from 'rocev2/internal/packet';
import { type Port, ROCE_UDP_PORT, type RxDatagram } from 'rocev2/internal/port';

/** Between two tries to send while the port has no room. */
const RETRY_NS = 1_000_000;
/** Where the port leaves the choice to us: any port of the dynamic range. */
const SOURCE_PORT = 0xd00d;

export interface Received {
  readonly packet: RocePacket;
  readonly payload: Uint8Array;
  readonly timeNs: number;
}

export interface Mishaps {
  readonly forge?: ReadonlyArray<readonly [offset: number, value: number]>;
  /** Bytes of the end that are left out before the ICRC is made. */
  readonly cut?: number;
  /**
   * A byte whose lowest bit is flipped after the ICRC was made: offset from the BTH; below 0 from the end of the ICRC.
   */
  readonly flip?: number;
  readonly congestion?: number;
  /** DSCP 0..63. */
  readonly dscp?: number;
  /** ECN codepoint 0..3. */
  readonly ecn?: number;
}

export class TestWire {
  readonly remote: IpAddress;
  readonly clock: Clock;
  readonly setsTrafficClass: boolean;
  unsound = 0;
  sent = 0;
  readonly #port: Port;
  readonly #sourcePort: number;
  readonly #flow: IcrcFlow;
  readonly #flowsBack = new Map<number, IcrcFlow>();
  readonly #takers = new Map<number, (received: Received) => void>();
  readonly #waiting: Array<() => boolean> = [];
  #ipId = 0;

  constructor(port: Port, clock: Clock, remote: IpAddress, setsTrafficClass: boolean) {
    this.#port = port;
    this.clock = clock;
    this.remote = remote;
    this.setsTrafficClass = setsTrafficClass;
    this.#sourcePort = port.fixedSourcePort ?? SOURCE_PORT;
    this.#flow = new IcrcFlow(port.address, remote, this.#sourcePort, ROCE_UDP_PORT);
    port.onDatagram = (datagram) => this.#receive(datagram);
  }

  get local(): IpAddress {
    return this.#port.address;
  }

  get pathMtuMax(): number {
    return this.#port.pathMtuMax;
  }

  listen(qpn: number, take: (received: Received) => void): void {
    this.#takers.set(qpn, take);
  }

  ignore(qpn: number): void {
    this.#takers.delete(qpn);
  }

  send(packet: Uint8Array, mishaps: Mishaps = {}): void {
    const bytes = new Uint8Array(Math.max(0, packet.length - (mishaps.cut ?? 0)) + ICRC_BYTES);
    bytes.set(packet.subarray(0, bytes.length - ICRC_BYTES));
    for (const [offset, value] of mishaps.forge ?? []) bytes[offset] = value;
    this.#waiting.push(() => this.#trySend(bytes, mishaps));
    this.#flush();
  }

  #flush(): void {
    while (this.#waiting.length > 0 && this.#waiting[0]()) this.#waiting.shift();
    if (this.#waiting.length > 0) this.clock.wakeAt(this.clock.nowNs() + RETRY_NS, () => this.#flush());
  }

  #trySend(bytes: Uint8Array, { flip, congestion = 0, dscp = 0, ecn = 0 }: Mishaps): boolean {
    const batch = this.#port.beginBatch();
    if (batch === undefined) return false;
    if (this.#port.ipIdPolicy === 'sequential') this.#ipId = (this.#ipId + 1) & 0xffff;
    const start = batch.payloadOffset(0);
    batch.slab.set(bytes, start);
    batch.count = 1;
    batch.lengths[0] = bytes.length;
    batch.ipIds[0] = this.#ipId;
    batch.ecns[0] = ecn;
    batch.dscps[0] = dscp;
    batch.sourcePorts[0] = this.#sourcePort;
    batch.destinationPorts[0] = ROCE_UDP_PORT;
    batch.sources[0] = this.#port.address;
    batch.destinations[0] = this.remote;
    sealIcrc(this.#flow, batch.slab, start, bytes.length, this.#ipId, undefined);
    if (congestion !== 0) batch.slab[start + 4] |= congestion;
    if (flip !== undefined) batch.slab[start + (flip < 0 ? bytes.length + flip : flip)] ^= 1;
    this.#port.sendBatch(batch);
    this.sent++;
    return true;
  }

  #receive(datagram: RxDatagram): void {
    if (!datagram.source.equals(this.remote)) return;
    const { bytes, offset, length } = datagram;
    const packet = new RocePacket();
    if (parseRoce(bytes, offset, length, packet) !== PARSE_OK || !this.#isSound(datagram)) {
      this.unsound++;
      return;
    }
    const payload = bytes.slice(packet.payloadOffset, packet.payloadOffset + packet.payloadBytes);
    this.#takers.get(packet.destQpn)?.({ packet, payload, timeNs: this.clock.nowNs() });
  }

  #isSound({ bytes, offset, length, source, sourcePort, ipId }: RxDatagram): boolean {
    let flow = this.#flowsBack.get(sourcePort);
    if (flow === undefined) {
      flow = new IcrcFlow(source, this.#port.address, sourcePort, this.#port.udpPort);
      this.#flowsBack.set(sourcePort, flow);
    }
    return checkIcrc(flow, bytes, offset, length, ipId) !== ICRC_BAD;
  }
}
