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
/** Enough for what a go-back-N sender has in flight around a loss, several times over. */
const PACKETS_RECORDED = 1024;
const BUCKETS_PER_BAR = 4;

export interface LaneAddress {
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

interface Lane {
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
  #lanes: Lane[] = [];
  #failures: string[] = [];
  #post: (lane: Lane) => void = () => {};

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

  async renew(count: number): Promise<LaneAddress[]> {
    this.#post = () => {};
    for (const { qp } of this.#lanes) await qp.close();
    this.#lanes = [];
    this.#failures = [];
    this.#latency.reset();
    for (let i = 0; i < count; i++) {
      const queues = { sendCq: this.#sendCq, recvCq: this.#recvCq };
      const qp = await this.#pd.createQp({ ...queues, maxSendWr: MESSAGES_POSTED, maxRecvWr: RECEIVES_POSTED });
      const psn = randomInt(PSN_COUNT);
      this.#lanes.push({ qp, psn, position: { psn, count: 0 }, postedNs: [] });
      this.#messagesCompleted[i] ??= 0;
    }
    return this.#lanes.map(({ qp, psn }) => ({ qpn: qp.qpn, psn }));
  }

  async connect(
    peer: string,
    peerLanes: readonly LaneAddress[],
    options: Omit<PeerQueuePair, 'peerAddress' | 'peerQpn' | 'peerPsn'>,
  ): Promise<void> {
    const peerAddress = IpAddress.parse(peer);
    for (const [i, { qpn, psn }] of peerLanes.entries()) {
      const lane = this.#lanes[i];
      await connectQueuePair(this.#device, lane.qp, lane.psn, {
        ...options,
        peerAddress,
        peerQpn: qpn,
        peerPsn: psn,
      });
      for (let n = 0; n < RECEIVES_POSTED; n++) lane.qp.postRecv({ sges: [this.#memory.sge()] });
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
    for (const lane of this.#lanes) for (let n = 0; n < MESSAGES_POSTED; n++) this.#post(lane);
  }

  async sample(): Promise<LabEndpointSample> {
    const infos = await Promise.all(this.#lanes.map(({ qp }) => qp.query()));
    for (const [i, { sqPsn }] of infos.entries()) {
      const lane = this.#lanes[i];
      const { psn, count } = lane.position;
      lane.position = { psn: sqPsn, count: count + psnDiff(sqPsn, psn) };
    }
    const { count, p50Ns, p99Ns, maxNs } = this.#latency.summary();
    return {
      counters: this.#device.counters(),
      messagesCompleted: this.#messagesCompleted.slice(0, this.#lanes.length),
      latency: { count, p50Ns, p99Ns, maxNs },
      rates: infos.map(({ rateBps, alpha }) => ({ rateBps: finiteOrNull(rateBps), alpha: finiteOrNull(alpha) })),
      bars: this.#latency.bars(BUCKETS_PER_BAR),
      failures: this.#failures,
    };
  }

  packets(): { packets: RecordedPacket[]; positions: PsnPosition[] } {
    return { packets: this.#ring.packets(), positions: this.#lanes.map(({ position }) => position) };
  }

  close(): Promise<void> {
    return this.#device.close();
  }

  async #serveReceives(): Promise<void> {
    for await (const wc of this.#recvCq) {
      const lane = this.#lanes.find(({ qp }) => qp.qpn === wc.qpn);
      if (wc.status === 0 && lane?.qp.isClosed === false) lane.qp.postRecv({ sges: [this.#memory.sge()] });
    }
  }

  async #serveCompletions(): Promise<void> {
    for await (const wc of this.#sendCq) {
      const index = this.#lanes.findIndex(({ qp }) => qp.qpn === wc.qpn);
      const lane = this.#lanes[index];
      if (lane === undefined || lane.qp.isClosed) continue;
      if (wc.status !== 0) {
        if (wc.statusName !== 'WR_FLUSH_ERR') this.#failures.push(wc.statusName);
        continue;
      }
      this.#messagesCompleted[index]++;
      this.#latency.record(nowNs() - lane.postedNs.shift()!);
      this.#post(lane);
    }
  }
}
