/** The application of a simulated host: its device, one completion queue and one buffer for all flows, and what its packets tell. */

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
} from 'rocev2/internal/verbs';
import type { SimStation } from '../sim-station.js';
import type { Flow } from './flow.js';
import type { TraceHash } from './trace-hash.js';

/** What is no payload in a packet, padding apart, by opcode. */
const OVERHEAD_BYTES = Uint8Array.from(OPCODES, (info) => BTH_BYTES + (info?.extBytes ?? 0) + ICRC_BYTES);

/** The other end of a flow, as packets name it: its host and its QPN. */
interface Track {
  readonly flow: Flow;
  /** The host, see {@link hostNumber}. */
  readonly peer: number;
  /** Another peer's, whose queue pair has the same number. */
  next: Track | undefined;
  /** Its data leave here. */
  readonly isSource: boolean;
  /** The PSN behind the newest data packet; -1 before the first. */
  nextPsn: number;
}

interface HostOptions {
  readonly station: SimStation;
  /** Of its one region. */
  readonly memoryBytes: number;
  readonly cqDepth: number;
  readonly trace: TraceHash;
  /** Counts the packets of each flow, see {@link Flow.packetsUnderWay}. */
  readonly followsPackets: boolean;
  /** Completions at the end of a flow that only receives are told from those at the other, see {@link Flow.passiveFailure}. Default: they are not. */
  readonly tellsEnds?: boolean;
}

/** One host of a scenario and the flows that end there. */
export class ScenarioHost {
  /** Its NIC on the cable. */
  readonly station: SimStation;
  /** Of all its queue pairs. */
  readonly pd: ProtectionDomain;
  /** Of all its queue pairs. */
  readonly cq: CompletionQueue;
  /** One buffer for all flows. */
  readonly memory: MemoryRegion;
  readonly #flows = new Map<number, Flow>();
  /** Flows whose data leaves here, by the QPN it is sent to: the first of a list of peers. Where packets are followed, also the others that send here. */
  readonly #sending = new Map<number, Track>();
  /** Packets that leave and arrive are counted for each flow, so that its queue pairs can be freed. */
  readonly #followsPackets: boolean;
  readonly #tellsEnds: boolean;
  /** Numbers of queue pairs that have been freed. */
  readonly #freed = new Set<number>();

  private constructor(
    /** Of all its queue pairs. */
    pd: ProtectionDomain,
    /** Of all its queue pairs. */
    cq: CompletionQueue,
    /** One buffer for all flows. */
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

  /** Opens the verbs device of `station`; `trace` hears of every packet. */
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
      else if (bytes[offset] === CNP || followsPackets) host.#onReceived(bytes[offset], readU24(bytes, offset + 5));
    };
    return host;
  }

  /** The flow has a queue pair here. */
  add(flow: Flow): void {
    const isSource = flow.source === this;
    this.#flows.set(isSource ? flow.sourceQpn : flow.sinkQpn, flow);
    if (!isSource && !this.#followsPackets) return;
    const peerQpn = isSource ? flow.sinkQpn : flow.sourceQpn;
    const peer = hostNumber((isSource ? flow.sink : flow.source).station.address);
    this.#sending.set(peerQpn, { flow, peer, next: this.#sending.get(peerQpn), isSource, nextPsn: -1 });
  }

  /** The flow has it no more. */
  remove(flow: Flow): void {
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

  /** Hands completions to their flows. */
  poll(nowNs: number): void {
    for (let wc = this.cq.pollOne(); wc !== undefined; wc = this.cq.pollOne()) {
      const flow = this.#flows.get(wc.qpn)!;
      flow.onCompletion(wc, nowNs, this.#tellsEnds && this !== flow.active);
    }
  }

  /** Tells first transmissions of data from repetitions, by PSN. */
  #onSent(bytes: Uint8Array, offset: number, length: number): void {
    const opcode = bytes[offset];
    const isData = opcode <= RC_READ_RESPONSE_ONLY && opcode !== RC_READ_REQUEST;
    if (!isData && !this.#followsPackets) return;
    let track = this.#sending.get(readU24(bytes, offset + 5));
    const peer = hostNumber(this.station.peer);
    while (track !== undefined && track.peer !== peer) track = track.next;
    if (track === undefined) return;
    const { flow } = track;
    if (this.#followsPackets) {
      flow.packetsUnderWay++;
      flow.lastPacketNs = this.station.host.nowNs();
    }
    if (!isData || !track.isSource) return;
    const psn = readU24(bytes, offset + 9);
    flow.packets++;
    if (track.nextPsn >= 0 && psnDiff(psn, track.nextPsn) < 0) flow.retransmittedPackets++;
    else {
      flow.sentBytes += length - OVERHEAD_BYTES[opcode] - ((bytes[offset + 1] >> BTH_PAD_SHIFT) & 3);
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

/** What tells hosts of a simulation apart: the last two bytes of their addresses, see {@link SimStation}. */
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
