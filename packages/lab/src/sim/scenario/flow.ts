import type { QueuePair, SendWorkRequest, WorkCompletion } from 'rocev2/internal/verbs';
import type { FlowPlan } from './flow-plan.js';
import type { ScenarioHost } from './scenario-host.js';

export const SPARE_RECEIVES = 8;

export interface QueuePairsOfFlow {
  readonly sourceQp: QueuePair | undefined;
  readonly sinkQp: QueuePair | undefined;
}

export class Flow {
  readonly plan: FlowPlan;
  readonly source: ScenarioHost;
  readonly sink: ScenarioHost;
  readonly sourceQpn: number;
  readonly sinkQpn: number;
  messages = 0;
  doneBytes = 0;
  doneNs: number;
  completedNs: number | undefined;
  failure: string | undefined;
  passiveFailure: string | undefined;
  packets = 0;
  sentBytes = 0;
  retransmittedPackets = 0;
  cnps = 0;
  /** Packets between its queue pairs, both ways, that have left and not arrived: in flight or lost. */
  packetsUnderWay = 0;
  lastPacketNs = 0;
  pair: QueuePairsOfFlow | undefined;
  #postedBytes = 0;

  constructor(plan: FlowPlan, source: ScenarioHost, sink: ScenarioHost, sourceQpn: number, sinkQpn: number) {
    this.plan = plan;
    this.doneNs = plan.startNs;
    this.source = source;
    this.sink = sink;
    this.sourceQpn = sourceQpn;
    this.sinkQpn = sinkQpn;
  }

  get active(): ScenarioHost {
    return this.plan.op === 'read' ? this.sink : this.source;
  }

  start(): void {
    this.startPassive();
    this.startActive();
  }

  startPassive(): void {
    if (this.plan.op !== 'send') return;
    for (let i = 0; i < this.plan.outstanding + SPARE_RECEIVES; i++) this.#postReceive();
  }

  startActive(): void {
    for (let i = 0; i < this.plan.outstanding; i++) this.#post();
  }

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
