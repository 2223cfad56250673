import { RoceError, readU16, readU24 } from 'rocev2/internal/core';
import {
  BTH_BYTES,
  BTH_PAD_SHIFT,
  CNP,
  ICRC_BYTES,
  type IpAddress,
  OPCODES,
  psnAdd,
  psnDiff,
  RC_READ_REQUEST,
  RC_READ_RESPONSE_ONLY,
} from 'rocev2/internal/packet';
import {
  Access,
  type CompletionQueue,
  type MemoryRegion,
  type ProtectionDomain,
  RdmaDevice,
  type WorkCompletion,
} from 'rocev2/internal/verbs';
import type { SimStation } from '../sim-station.js';
import type { TraceHash } from './trace-hash.js';

/** What is no payload in a packet, padding apart, by opcode. */
const OVERHEAD_BYTES = Uint8Array.from(OPCODES, (info) => BTH_BYTES + (info?.extBytes ?? 0) + ICRC_BYTES);

/** What a host counts and tells of a flow that begins or ends there. */
interface HostedFlow {
  readonly source: ScenarioHost;
  readonly sink: ScenarioHost;
  readonly active: ScenarioHost;
  readonly sourceQpn: number;
  readonly sinkQpn: number;
  packets: number;
  sentBytes: number;
  retransmittedPackets: number;
  cnps: number;
  packetsUnderWay: number;
  lastPacketNs: number;
  onCompletion(wc: WorkCompletion, nowNs: number, isPassive: boolean): void;
}

interface Track {
  readonly flow: HostedFlow;
  readonly peer: number;
  next: Track | undefined;
  readonly isSource: boolean;
  /** The PSN of the newest data packet; -1 before the first. */
  nextPsn: number;
}

interface HostOptions {
  readonly station: SimStation;
  readonly memoryBytes: number;
  readonly cqDepth: number;
  readonly trace: TraceHash;
  readonly followsPackets: boolean;
  readonly tellsEnds?: boolean;
}

export class ScenarioHost {
  readonly station: SimStation;
  readonly pd: ProtectionDomain;
  readonly cq: CompletionQueue;
  readonly memory: MemoryRegion;
  /** Payload of all data packets that arrived, of retransmissions as well. */
  receivedBytes = 0;
  readonly #flows = new Map<number, HostedFlow>();
  readonly #sending = new Map<number, Track>();
  readonly #followsPackets: boolean;
  readonly #tellsEnds: boolean;
  readonly #freed = new Set<number>();

  private constructor(
    pd: ProtectionDomain,
    cq: CompletionQueue,
    memory: MemoryRegion,
    { station, followsPackets, tellsEnds = false }: HostOptions,
  ) {
    this.station = station;
    this.pd = pd;
    this.cq = cq;
    this.memory = memory;
    this.#followsPackets = followsPackets;
    this.#tellsEnds = tellsEnds;
  }

  static async create(options: HostOptions): Promise<ScenarioHost> {
    const { station, memoryBytes, cqDepth, trace, followsPackets } = options;
    const device = await RdmaDevice.over(station.host);
    const pd = await device.createPd();
    const host = new ScenarioHost(
      pd,
      await device.createCq(cqDepth),
      await pd.regMr(memoryBytes, Access.REMOTE_ALL),
      options,
    );
    station.onPacket = (isSent, bytes, offset, length, ecn) => {
      trace.add(isSent, bytes, offset, length, ecn);
      if (isSent) host.#onSent(bytes, offset, length);
      else if (isData(bytes[offset])) host.receivedBytes += payloadBytes(bytes, offset, length);
      if (isSent) return;
      if (bytes[offset] === CNP || followsPackets) host.#onReceived(bytes[offset], readU24(bytes, offset + 5));
    };
    return host;
  }

  add(flow: HostedFlow): void {
    const isSource = flow.source === this;
    this.#flows.set(isSource ? flow.sourceQpn : flow.sinkQpn, flow);
    if (!isSource && !this.#followsPackets) return;
    const peerQpn = isSource ? flow.sinkQpn : flow.sourceQpn;
    const peer = hostNumber((isSource ? flow.sink : flow.source).station.address);
    this.#sending.set(peerQpn, { flow, peer, next: this.#sending.get(peerQpn), isSource, nextPsn: -1 });
  }

  remove(flow: HostedFlow): void {
    const isSource = flow.source === this;
    const qpn = isSource ? flow.sourceQpn : flow.sinkQpn;
    const peerQpn = isSource ? flow.sinkQpn : flow.sourceQpn;
    this.#flows.delete(qpn);
    this.#freed.add(qpn);
    const first = this.#sending.get(peerQpn);
    if (first?.flow !== flow) {
      let before = first;
      while (before?.next !== undefined && before.next.flow !== flow) before = before.next;
      if (before !== undefined) before.next = before.next?.next;
    } else if (first.next === undefined) this.#sending.delete(peerQpn);
    else this.#sending.set(peerQpn, first.next);
  }

  poll(nowNs: number): void {
    for (let wc = this.cq.pollOne(); wc !== undefined; wc = this.cq.pollOne()) {
      const flow = this.#flows.get(wc.qpn)!;
      flow.onCompletion(wc, nowNs, this.#tellsEnds && this !== flow.active);
    }
  }

  #onSent(bytes: Uint8Array, offset: number, length: number): void {
    const opcode = bytes[offset];
    const carriesData = isData(opcode);
    if (!carriesData && !this.#followsPackets) return;
    let track = this.#sending.get(readU24(bytes, offset + 5));
    const peer = hostNumber(this.station.peer);
    while (track !== undefined && track.peer !== peer) track = track.next;
    if (track === undefined) return;
    const { flow } = track;
    if (this.#followsPackets) {
      flow.packetsUnderWay++;
      flow.lastPacketNs = this.station.host.nowNs();
    }
    if (!carriesData || !track.isSource) return;
    const psn = readU24(bytes, offset + 9);
    flow.packets++;
    if (track.nextPsn >= 0 && psnDiff(psn, track.nextPsn) < 0) flow.retransmittedPackets++;
    else {
      flow.sentBytes += payloadBytes(bytes, offset, length);
      track.nextPsn = psnAdd(psn, 1);
    }
  }

  #onReceived(opcode: number, qpn: number): void {
    const flow = this.#flows.get(qpn);
    if (flow === undefined) {
      if (this.#freed.has(qpn)) throw latePacket(qpn, this.station.host.nowNs());
      return;
    }
    if (opcode === CNP) flow.cnps++;
    flow.packetsUnderWay--;
    flow.lastPacketNs = this.station.host.nowNs();
  }
}

function isData(opcode: number): boolean {
  return opcode <= RC_READ_RESPONSE_ONLY && opcode !== RC_READ_REQUEST;
}

function payloadBytes(bytes: Uint8Array, offset: number, length: number): number {
  return length - OVERHEAD_BYTES[bytes[offset]] - ((bytes[offset + 1] >> BTH_PAD_SHIFT) & 3);
}

/** Unique number of a host of a simulation: the last two bytes of their addresses, see {@link SimStation}. */
function hostNumber({ bytes }: IpAddress): number {
  return readU16(bytes, 2);
}

function latePacket(qpn: number, nowNs: number): RoceError {
  return new RoceError(
    'ERR_ROCE_CONFLICT',
    `a packet came ${nowNs} ns after the beginning for QP 0x${qpn.toString(16)}, whose flow is over: nobody answers it, so the run would not be the same`,
    'set queuePairs to at-start',
  );
}
