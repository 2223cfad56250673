/**
 * A port that sends whole Ethernet frames, one per UDP datagram, as QEMU's `-netdev dgram`, GNS3 and our software
 * switch do; so ICRC, ECN, DSCP and IPv4 identification are exact in both directions. Headers are written into the
 * headroom. A datagram to an unresolved neighbour is dropped and counted; RC retransmits. Invariants: DF is set and
 * nothing is fragmented; the UDP checksum is 0 in both families, as in Linux's rdma_rxe; bad bytes are counted, never
 * thrown on; nothing is called back after `close`.
 */

import type { RemoteInfo } from 'node:dgram';
import { RoceError } from '../../core/errors.js';
import type { RandomSource } from '../../core/random.js';
import { BatchPool } from '../../dgram-ext/batch-pool.js';
import { DEFAULT_SOCKET_BUFFER_BYTES } from '../../dgram-ext/bound-socket.js';
import { pathMtuForLink } from '../../dgram-ext/link-mtu.js';
import { PortSocket } from '../../dgram-ext/port-socket.js';
import type { UdpEndpoint } from '../../dgram-ext/udp-endpoint.js';
import { receiveBudgetOf } from '../../dgram-ext/udp-options.js';
import type { IpAddress } from '../../packet/address.js';
import { ETHERNET_BYTES, ETHERTYPE_ARP, ETHERTYPE_MAC_CONTROL, MAC_BYTES } from '../../packet/ethernet.js';
import { FRAME_NOT_IP, FRAME_NOT_UDP, FRAME_OK, FRAME_REASONS, FrameInfo, parseFrame } from '../../packet/frame.js';
import { IP_PROTOCOL_ICMPV6 } from '../../packet/ndp.js';
import { PfcFrame, PRIORITIES, parsePfc, pauseNs } from '../../packet/pfc.js';
import {
  type IpIdPolicy,
  type Port,
  type PortCounters,
  ROCE_UDP_PORT,
  type RxDatagram,
  type TxBatch,
} from '../datagram.js';
import { frameHeaderBytes, newRxDatagram, readFrame, writeFrameHeaders } from '../frame-headers.js';
import { isAt, SourceCache } from '../source-cache.js';
import { NeighborProtocol } from './neighbor-protocol.js';

export interface FramePortOptions {
  readonly address: IpAddress;
  readonly mac?: Uint8Array;
  readonly local: UdpEndpoint;
  readonly remote: UdpEndpoint;
  readonly rateBps?: number;
  readonly mtuBytes?: number;
  readonly random: RandomSource;
  readonly nowNs: () => number;
  readonly neighbors?: ReadonlyArray<{ readonly address: IpAddress; readonly mac: Uint8Array }>;
  readonly batchSlots?: number;
  readonly batches?: number;
}

export interface FramePort extends Port {
  readonly mac: Uint8Array;
  readonly drops: Readonly<Record<string, number>>;
  resolve(address: IpAddress): Promise<void>;
}

const DEFAULT_RATE_BPS = 10e9;
const GROUP_BIT = 1;
const LOCALLY_ADMINISTERED_BIT = 2;
const RESOLVE_ATTEMPTS = 50;
const RESOLVE_POLL_MS = 20;

export function openFramePort(options: FramePortOptions): FramePort {
  return new DatagramFramePort(options);
}

class DatagramFramePort implements FramePort {
  readonly address: IpAddress;
  readonly mac: Uint8Array;
  readonly udpPort = ROCE_UDP_PORT;
  readonly pathMtuMax: number;
  readonly ipIdPolicy: IpIdPolicy;
  readonly fixedSourcePort = undefined;
  readonly drops: Record<string, number> = {};
  onDatagram: (datagram: RxDatagram) => void = () => {};
  onPause: (priority: number, durationNs: number) => void = () => {};
  onError: (error: Error) => void = () => {};

  readonly #local: UdpEndpoint;
  readonly #remotePort: number;
  readonly #remoteHost: string;
  readonly #headerBytes: number;
  readonly #socket: PortSocket;
  readonly #neighbors: NeighborProtocol;
  readonly #sources = new SourceCache();
  readonly #frame = new FrameInfo();
  readonly #pfc = new PfcFrame();
  readonly #rateBps: number;
  readonly #nowNs: () => number;
  readonly #rx: RxDatagram;
  #receiveBudgetPackets = 0;

  constructor(options: FramePortOptions) {
    const { address, local, remote } = options;
    if (local.host.family !== remote.host.family) {
      throw new RoceError(
        'ERR_ROCE_ADDRESS_FAMILY',
        `a frame wire cannot run from ${local.host.text} to ${remote.host.text}`,
        'both ends are IPv4, or both are IPv6; the addresses inside the frames do not matter',
      );
    }
    this.address = address;
    this.mac = Uint8Array.from(options.mac ?? randomMac(options.random));
    if (this.mac.length !== MAC_BYTES || (this.mac[0] & GROUP_BIT) !== 0) {
      throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', 'a station needs a unicast MAC address of six bytes');
    }
    this.pathMtuMax = pathMtuForLink(options.mtuBytes ?? 9000);
    this.ipIdPolicy = address.family === 4 ? 'sequential' : 'zero';
    this.#local = local;
    this.#remotePort = remote.port;
    this.#remoteHost = remote.host.text;
    this.#headerBytes = frameHeaderBytes(address.family);
    this.#rateBps = options.rateBps ?? DEFAULT_RATE_BPS;
    this.#nowNs = options.nowNs;
    this.#socket = new PortSocket(new BatchPool(options.batches ?? 16, options.batchSlots ?? 64, address), {
      onMessage: (bytes, from) => {
        const reason = this.#isPeer(from) ? this.#receive(bytes) : 'stranger';
        if (reason !== undefined) this.#drop(reason);
      },
      onError: (error) => this.onError(error),
    });
    this.#neighbors = new NeighborProtocol(address, this.mac, (frame) => {
      this.#socket.sendControl(frame, this.#remotePort, this.#remoteHost);
    });
    for (const neighbor of options.neighbors ?? []) this.#neighbors.addStatic(neighbor.address, neighbor.mac);
    this.#rx = newRxDatagram(address);
  }

  get description(): string {
    return `Ethernet frames for ${this.address.text} over UDP to ${this.#remoteHost}:${this.#remotePort}`;
  }

  get receiveBudgetPackets(): number {
    return this.#receiveBudgetPackets;
  }

  get counters(): Readonly<PortCounters> {
    return this.#socket.counters;
  }

  async open(): Promise<void> {
    const bound = await this.#socket.open({
      address: this.#local.host,
      udpPort: this.#local.port,
      receiveBufferBytes: DEFAULT_SOCKET_BUFFER_BYTES,
      sendBufferBytes: DEFAULT_SOCKET_BUFFER_BYTES,
      native: true,
    });
    this.#receiveBudgetPackets = receiveBudgetOf(bound.receiveBufferBytes);
    this.#neighbors.announce();
  }

  beginBatch(): TxBatch | undefined {
    return this.#socket.beginBatch();
  }

  sendBatch(batch: TxBatch): void {
    const now = this.#nowNs();
    for (let slot = 0; slot < batch.count; slot++) {
      const mac = this.#neighbors.lookup(batch.destinations[slot], now);
      if (mac === undefined) {
        this.#socket.counters.txErrors++;
        this.#drop('tx_unresolved');
        continue;
      }
      writeFrameHeaders(batch, slot, this.mac, mac);
      this.#socket.send(batch.frameView(slot, this.#headerBytes), this.#remotePort, this.#remoteHost);
    }
    this.#socket.endBatch(batch);
  }

  async resolve(address: IpAddress): Promise<void> {
    for (let attempt = 0; attempt < RESOLVE_ATTEMPTS && this.#socket.isOpen; attempt++) {
      if (this.#neighbors.lookup(address, this.#nowNs()) !== undefined) return;
      await new Promise((resolve) => setTimeout(resolve, attempt === 0 ? 1 : RESOLVE_POLL_MS));
    }
    throw new RoceError(
      'ERR_ROCE_CONNECT',
      `no neighbour answers for ${address.text} on this wire`,
      'is the peer open, and are both ends on the same switch?',
    );
  }

  close(): Promise<void> {
    return this.#socket.close();
  }

  #isPeer(from: RemoteInfo): boolean {
    return from.port === this.#remotePort && from.address === this.#remoteHost;
  }

  #receive(bytes: Uint8Array): string | undefined {
    const frame = this.#frame;
    const verdict = parseFrame(bytes, 0, bytes.length, frame);
    if (bytes.length >= ETHERNET_BYTES && (bytes[0] & GROUP_BIT) === 0 && !isAt(this.mac, bytes, 0, MAC_BYTES)) {
      return 'not_my_mac';
    }
    if (verdict === FRAME_NOT_IP && frame.ethertype === ETHERTYPE_ARP) {
      return this.#neighbors.receiveArp(bytes, frame.ipOffset, this.#nowNs()) ? undefined : 'bad_arp';
    }
    if (verdict === FRAME_NOT_IP && frame.ethertype === ETHERTYPE_MAC_CONTROL) {
      return this.#receivePause(bytes) ? undefined : 'bad_pfc';
    }
    if (verdict === FRAME_NOT_UDP && frame.protocol === IP_PROTOCOL_ICMPV6) {
      return this.#neighbors.receiveNdp(bytes, frame.ipOffset, this.#nowNs()) ? undefined : 'bad_ndp';
    }
    if (verdict !== FRAME_OK) return FRAME_REASONS[verdict];
    if (!isAt(this.address.bytes, bytes, frame.destinationOffset, frame.addressBytes)) return 'not_my_address';
    if (frame.destinationPort !== ROCE_UDP_PORT) return 'not_roce_port';
    readFrame(this.#rx, bytes, frame, this.#sources.get(bytes, frame.sourceOffset, frame.addressBytes));
    this.#socket.counters.rxDatagrams++;
    this.onDatagram(this.#rx);
    return undefined;
  }

  #receivePause(bytes: Uint8Array): boolean {
    const pfc = this.#pfc;
    if (!parsePfc(bytes, 0, bytes.length, pfc)) return false;
    for (let priority = 0; priority < PRIORITIES; priority++) {
      if ((pfc.enabled & (1 << priority)) !== 0) this.onPause(priority, pauseNs(pfc.quanta[priority], this.#rateBps));
    }
    return true;
  }

  #drop(reason: string): void {
    this.drops[reason] = (this.drops[reason] ?? 0) + 1;
  }
}

function randomMac(random: RandomSource): Uint8Array {
  const mac = Uint8Array.from({ length: MAC_BYTES }, () => random.u32() & 0xff);
  mac[0] = (mac[0] & ~GROUP_BIT) | LOCALLY_ADMINISTERED_BIT;
  return mac;
}
