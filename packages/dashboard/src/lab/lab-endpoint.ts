/**
 * One end of the dashboard's lab. Queue pairs are recreated whenever the settings change, while the NIC's counters
 * continue. The sender keeps two messages in each send queue.
 */

import { randomInt } from 'node:crypto';
import { connectQueuePair, type PeerQueuePair } from '@rocev2/lab/internal';
import { ObservedPort, PacketRing, type RecordedPacket } from 'rocev2/internal/capture';
import { finiteOrNull } from 'rocev2/internal/core';
import { InlineEngine, nowNs, openPort, systemRandom } from 'rocev2/internal/driver';
import { Histogram, type HistogramBar } from 'rocev2/internal/estats';
import type { CounterName } from 'rocev2/internal/memory';
import { IpAddress, PSN_COUNT, psnDiff } from 'rocev2/internal/packet';
import {
  Access,
  type CompletionQueue,
  type MemoryRegion,
  type ProtectionDomain,
  type QueuePair,
  RdmaDevice,
} from 'rocev2/internal/verbs';
import type { LabOp } from '../messages/lab-messages.js';
import type { PsnPosition } from './packet-story.js';

const MESSAGES_POSTED = 2;
const RECEIVES_POSTED = 8;
export const QUEUE_PAIRS_MAX = 8;
/** Enough for several times the packets of a go-back-N sender around a loss. */
const PACKETS_RECORDED = 1024;
const BUCKETS_PER_BAR = 4;

export interface FlowAddress {
  readonly qpn: number;
  readonly psn: number;
}

export interface LabEndpointSample {
  readonly counters: Readonly<Record<CounterName, number>>;
  readonly messagesCompleted: readonly number[];
  /** Of messages completed since the queue pairs were made; 0 without any. */
  readonly latency: { readonly count: number; readonly p50Ns: number; readonly p99Ns: number; readonly maxNs: number };
  readonly bars: readonly HistogramBar[];
  readonly rates: ReadonlyArray<{ readonly rateBps: number | null; readonly alpha: number | null }>;
  readonly failures: readonly string[];
}

interface LabFlow {
  readonly qp: QueuePair;
  readonly psn: number;
  position: PsnPosition;
  readonly postedNs: number[];
}

interface LabEndpointParts {
  readonly device: RdmaDevice;
  readonly pd: ProtectionDomain;
  readonly sendCq: CompletionQueue;
  readonly recvCq: CompletionQueue;
  readonly memory: MemoryRegion;
  readonly ring: PacketRing;
}

export class LabEndpoint {
  readonly #device: RdmaDevice;
  readonly #pd: ProtectionDomain;
  readonly #sendCq: CompletionQueue;
  readonly #recvCq: CompletionQueue;
  readonly #memory: MemoryRegion;
  readonly #ring: PacketRing;
  readonly #messagesCompleted: number[] = [];
  readonly #latency = new Histogram();
  #flows: LabFlow[] = [];
  #failures: string[] = [];
  #post: (flow: LabFlow) => void = () => {};

  private constructor({ device, pd, sendCq, recvCq, memory, ring }: LabEndpointParts) {
    this.#device = device;
    this.#pd = pd;
    this.#sendCq = sendCq;
    this.#recvCq = recvCq;
    this.#memory = memory;
    this.#ring = ring;
    void this.#serveReceives();
    void this.#serveCompletions();
  }

  static async open(address: string, switchPort: string, rateBps: number, messageBytes: number): Promise<LabEndpoint> {
    const opened = await openPort({ address, frame: { local: '127.0.0.1:0', remote: switchPort, rateBps } });
    const ring = new PacketRing(PACKETS_RECORDED, nowNs);
    const observed = { ...opened, port: new ObservedPort(opened.port, ring) };
    const device = await RdmaDevice.over(new InlineEngine(observed, systemRandom()));
    const pd = await device.createPd();
    const sendCq = await device.createCq(2 * MESSAGES_POSTED * QUEUE_PAIRS_MAX);
    const recvCq = await device.createCq(2 * RECEIVES_POSTED * QUEUE_PAIRS_MAX);
    const memory = await pd.regMr(messageBytes, Access.REMOTE_ALL);
    return new LabEndpoint({ device, pd, sendCq, recvCq, memory, ring });
  }

  get target(): { remoteAddr: bigint; rkey: number } {
    return { remoteAddr: this.#memory.addr, rkey: this.#memory.rkey };
  }

  async renew(count: number): Promise<FlowAddress[]> {
    this.#post = () => {};
    for (const { qp } of this.#flows) await qp.close();
    this.#flows = [];
    this.#failures = [];
    this.#latency.reset();
    for (let i = 0; i < count; i++) {
      const queues = { sendCq: this.#sendCq, recvCq: this.#recvCq };
      const qp = await this.#pd.createQp({ ...queues, maxSendWr: MESSAGES_POSTED, maxRecvWr: RECEIVES_POSTED });
      const psn = randomInt(PSN_COUNT);
      this.#flows.push({ qp, psn, position: { psn, count: 0 }, postedNs: [] });
      this.#messagesCompleted[i] ??= 0;
    }
    return this.#flows.map(({ qp, psn }) => ({ qpn: qp.qpn, psn }));
  }

  async connect(
    peer: string,
    peerFlows: readonly FlowAddress[],
    options: Omit<PeerQueuePair, 'peerAddress' | 'peerQpn' | 'peerPsn'>,
  ): Promise<void> {
    const peerAddress = IpAddress.parse(peer);
    for (const [i, { qpn, psn }] of peerFlows.entries()) {
      const flow = this.#flows[i];
      await connectQueuePair(this.#device, flow.qp, flow.psn, {
        ...options,
        peerAddress,
        peerQpn: qpn,
        peerPsn: psn,
      });
      for (let n = 0; n < RECEIVES_POSTED; n++) flow.qp.postRecv({ sges: [this.#memory.sge()] });
    }
  }

  start(op: LabOp, target: { remoteAddr: bigint; rkey: number }): void {
    const opcode = ({ send: 'SEND', write: 'RDMA_WRITE', read: 'RDMA_READ' } as const)[op];
    const sges = [this.#memory.sge()];
    const request = opcode === 'SEND' ? ({ opcode, sges } as const) : { opcode, sges, ...target };
    this.#post = ({ qp, postedNs }) => {
      postedNs.push(nowNs());
      qp.postSend(request);
    };
    for (const flow of this.#flows) for (let n = 0; n < MESSAGES_POSTED; n++) this.#post(flow);
  }

  async sample(): Promise<LabEndpointSample> {
    const infos = await Promise.all(this.#flows.map(({ qp }) => qp.query()));
    for (const [i, { sqPsn }] of infos.entries()) {
      const flow = this.#flows[i];
      const { psn, count } = flow.position;
      flow.position = { psn: sqPsn, count: count + psnDiff(sqPsn, psn) };
    }
    const { count, p50Ns, p99Ns, maxNs } = this.#latency.summary();
    return {
      counters: this.#device.counters(),
      messagesCompleted: this.#messagesCompleted.slice(0, this.#flows.length),
      latency: { count, p50Ns, p99Ns, maxNs },
      rates: infos.map(({ rateBps, alpha }) => ({ rateBps: finiteOrNull(rateBps), alpha: finiteOrNull(alpha) })),
      bars: this.#latency.bars(BUCKETS_PER_BAR),
      failures: this.#failures,
    };
  }

  packets(): { packets: RecordedPacket[]; positions: PsnPosition[] } {
    return { packets: this.#ring.packets(), positions: this.#flows.map(({ position }) => position) };
  }

  forgetPackets(): void {
    this.#ring.clear();
  }

  close(): Promise<void> {
    return this.#device.close();
  }

  async #serveReceives(): Promise<void> {
    for await (const wc of this.#recvCq) {
      const flow = this.#flows.find(({ qp }) => qp.qpn === wc.qpn);
      if (wc.status === 0 && flow?.qp.isClosed === false) flow.qp.postRecv({ sges: [this.#memory.sge()] });
    }
  }

  async #serveCompletions(): Promise<void> {
    for await (const wc of this.#sendCq) {
      const index = this.#flows.findIndex(({ qp }) => qp.qpn === wc.qpn);
      const flow = this.#flows[index];
      if (flow === undefined || flow.qp.isClosed) continue;
      if (wc.status !== 0) {
        if (wc.statusName !== 'WR_FLUSH_ERR') this.#failures.push(wc.statusName);
        continue;
      }
      this.#messagesCompleted[index]++;
      this.#latency.record(nowNs() - flow.postedNs.shift()!);
      this.#post(flow);
    }
  }
}
