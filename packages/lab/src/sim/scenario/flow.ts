/** One flow in a running scenario: keeps its work requests posted, and counts what became of it. */

import type { QueuePair, SendWorkRequest, WorkCompletion } from 'rocev2/internal/verbs';
import type { FlowPlan } from './flow-plan.js';
import type { ScenarioHost } from './scenario-host.js';

/** Receives kept posted beyond what the sender has outstanding. */
export const SPARE_RECEIVES = 8;

/** The two ends of a flow; undefined where another part of the network has it. */
export interface QueuePairsOfFlow {
  /** At the host that has the data. */
  readonly sourceQp: QueuePair | undefined;
  /** At the other host. */
  readonly sinkQp: QueuePair | undefined;
}

/** A flow while it runs: its queue pairs, and how far it has come. */
export class Flow {
  /** What was planned. */
  readonly plan: FlowPlan;
  /** Has the data; sends it, or lets it be read. */
  readonly source: ScenarioHost;
  /** Host the data goes to. */
  readonly sink: ScenarioHost;
  /** Number of the queue pair at the host that has the data. */
  readonly sourceQpn: number;
  /** Number of the queue pair at the other host. */
  readonly sinkQpn: number;
  /** Messages that have completed. */
  messages = 0;
  /** Payload of completed messages. */
  doneBytes = 0;
  /** Virtual time of the last completion; before the first, when the flow starts. */
  doneNs: number;
  /** Virtual time at which all bytes were done; undefined before, and always for flows without end. */
  completedNs: number | undefined;
  /** The status of the work request that failed. */
  failure: string | undefined;
  /** The same at the end that only receives, where the two ends are told apart: each may be simulated without the other. */
  passiveFailure: string | undefined;
  /** Data packets from source to sink, repeated ones included. */
  packets = 0;
  /** Payload in packets sent for the first time. */
  sentBytes = 0;
  /** Data packets sent again. */
  retransmittedPackets = 0;
  /** Congestion notifications that the source has received. */
  cnps = 0;
  /** Packets between its queue pairs, both ways, that have left and not arrived: under way or lost. Only where packets are followed. */
  packetsUnderWay = 0;
  /** When the last of them left or arrived. */
  lastPacketNs = 0;
  /** Its queue pairs, from when they are connected until they are freed. */
  pair: QueuePairsOfFlow | undefined;
  #postedBytes = 0;

  constructor(
    /** What was planned. */
    plan: FlowPlan,
    source: ScenarioHost,
    /** Host the data goes to. */
    sink: ScenarioHost,
    /** Number of the queue pair at the host that has the data. */
    sourceQpn: number,
    /** Number of the queue pair at the other host. */
    sinkQpn: number,
  ) {
    this.plan = plan;
    this.doneNs = plan.startNs;
    this.source = source;
    this.sink = sink;
    this.sourceQpn = sourceQpn;
    this.sinkQpn = sinkQpn;
  }

  /** The host whose work requests move the data. */
  get active(): ScenarioHost {
    return this.plan.op === 'read' ? this.sink : this.source;
  }

  /** Posts the first work requests, at both ends. */
  start(): void {
    this.startPassive();
    this.startActive();
  }

  /** Posts what the passive end needs before the data comes. */
  startPassive(): void {
    if (this.plan.op !== 'send') return;
    for (let i = 0; i < this.plan.outstanding + SPARE_RECEIVES; i++) this.#postReceive();
  }

  /** Posts the first work requests that move the data. */
  startActive(): void {
    for (let i = 0; i < this.plan.outstanding; i++) this.#post();
  }

  /** A work request of one of the flow's queue pairs is done; `isPassive`: of the end that only receives, where the two are told apart. */
  onCompletion(wc: WorkCompletion, nowNs: number, isPassive: boolean): void {
    if (wc.status !== 0) {
      if (isPassive) this.passiveFailure ??= wc.statusName;
      else this.failure ??= `${wc.statusName} after ${this.doneBytes} bytes`;
      return;
    }
    if (wc.opcode === 'RECV') {
      this.#postReceive();
      return;
    }
    this.messages++;
    this.doneBytes += Number(wc.wrId);
    this.doneNs = nowNs;
    if (this.doneBytes >= this.plan.bytes) this.completedNs = nowNs;
    else this.#post();
  }

  #post(): void {
    const { op, messageBytes, bytes } = this.plan;
    const length = Math.min(messageBytes, bytes - this.#postedBytes);
    if (length <= 0) return;
    this.#postedBytes += length;
    const { sourceQp, sinkQp } = this.pair!;
    const poster = op === 'read' ? sinkQp : sourceQp;
    poster!.postSend(this.#request(length));
  }

  #request(length: number): SendWorkRequest {
    const { source, sink } = this;
    switch (this.plan.op) {
      case 'send':
        return { opcode: 'SEND', wrId: length, sges: [source.memory.sge(0, length)] };
      case 'write':
        return {
          opcode: 'RDMA_WRITE',
          wrId: length,
          sges: [source.memory.sge(0, length)],
          remoteAddr: sink.memory.addr,
          rkey: sink.memory.rkey,
        };
      case 'read':
        return {
          opcode: 'RDMA_READ',
          wrId: length,
          sges: [sink.memory.sge(0, length)],
          remoteAddr: source.memory.addr,
          rkey: source.memory.rkey,
        };
    }
  }

  #postReceive(): void {
    this.pair!.sinkQp!.postRecv({ sges: [this.sink.memory.sge(0, this.plan.messageBytes)] });
  }
}
