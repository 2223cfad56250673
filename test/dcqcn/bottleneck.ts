/**
 * Flows of one simulated host to another through a slow link with a queue and RED marking at its end: DCQCN's congestion point, as plain as
 * it can be. Answers fly back without a queue.
 */

import { EventQueue } from '../../packages/lab/src/sim/event-queue.js';
import { SimHost } from '../../packages/lab/src/sim/sim-host.js';
import { readU24 } from '../../src/core/bytes.js';
import { type RandomSource, randomUnit, SeededRandom } from '../../src/core/random.js';
import type { RateControlOptions } from '../../src/dcqcn/rate-controls.js';
import { IpAddress } from '../../src/packet/address.js';
import { linkOverheadBytes } from '../../src/packet/frame.js';
import { IcrcFlow, sealIcrc } from '../../src/packet/icrc.js';
import { ICRC_BYTES, writeCnp } from '../../src/packet/roce.js';
import { datagramOf, ECN_CE, type RxDatagram } from '../../src/port/datagram.js';
import { Access } from '../../src/verbs/access.js';
import { RdmaDevice } from '../../src/verbs/device.js';
import type { QueuePair } from '../../src/verbs/queue-pair.js';
import { connectQp } from '../support/pair.js';
import { runToRest } from '../support/virtual-time.js';

export interface BottleneckOptions {
  /** One flow each. */
  readonly flows: readonly RateControlOptions[];
  readonly rateBps: number;
  readonly delayNs: number;
  /** RED: nothing is marked up to kmin, everything above kmax, with a probability rising to pmax between. */
  readonly kminBytes: number;
  readonly kmaxBytes: number;
  readonly pmax: number;
  readonly operation?: 'RDMA_WRITE' | 'RDMA_READ';
  /** Of each of the {@link MESSAGES} of a flow. Default 1 MiB. */
  readonly messageBytes?: number;
}

/** The senders' own link. */
const HOST_RATE_BPS = 40e9;
const MTU = 1024;
const MESSAGE_BYTES_DEFAULT = 1 << 20;
const MESSAGES = 200;
const OVERHEAD_BYTES = linkOverheadBytes(4);

/** Data of the flow that a QP sends arrives at the peer's QP with this number. */
type FlowKey = number;

export class Bottleneck {
  readonly events: EventQueue;
  readonly senders: QueuePair[] = [];
  readonly receiver: RdmaDevice;
  readonly sender: RdmaDevice;
  readonly #sourcePorts: number[] = [];
  readonly #options: BottleneckOptions;
  readonly #random: RandomSource;
  readonly #carriedBytes = new Map<FlowKey, number>();
  readonly #flowKeys: FlowKey[] = [];
  #freeNs = 0;
  #queueMaxBytes = 0;

  private constructor(
    options: BottleneckOptions,
    random: SeededRandom,
    events: EventQueue,
    sender: RdmaDevice,
    receiver: RdmaDevice,
  ) {
    this.#options = options;
    this.events = events;
    this.#random = random.stream('marks');
    this.sender = sender;
    this.receiver = receiver;
  }

  static async create(options: BottleneckOptions, seed = 1): Promise<Bottleneck> {
    const random = new SeededRandom(seed);
    const events = new EventQueue();
    const [a, b] = ['192.0.2.1', '192.0.2.2'].map(
      (text) => new SimHost({ address: IpAddress.parse(text), events, random: random.stream(text) }),
    );
    const link = new Bottleneck(options, random, events, await RdmaDevice.over(a), await RdmaDevice.over(b));
    a.connect((batch) => link.#enqueue(datagramOf(batch, 0), b));
    b.connect((batch) => {
      const datagram = datagramOf(batch, 0);
      events.after(options.delayNs, () => a.receive(datagram));
      return events.nowNs;
    });
    for (const rateControl of options.flows) await link.#addFlow(rateControl);
    return link;
  }

  /** READs flow the same way as WRITEs: the receiver asks for them. */
  async #addFlow(rateControl: RateControlOptions): Promise<void> {
    const isRead = this.#options.operation === 'RDMA_READ';
    const [from, to] = await Promise.all(
      [this.sender, this.receiver].map(async (device) => {
        const pd = await device.createPd();
        const cq = await device.createCq(1024);
        const qp = await pd.createQp({ sendCq: cq, maxSendWr: 256 });
        return {
          qp,
          device,
          region: await pd.regMr(this.#options.messageBytes ?? MESSAGE_BYTES_DEFAULT, Access.REMOTE_ALL),
        };
      }),
    );
    const own = { psn: 0, mtu: MTU, recovery: 'go-back-n' } as const;
    const attr = { inflightPackets: 100_000, timeout: 0 };
    const peerOf = ({ qp, device }: typeof from) => ({ address: device.address, qpn: qp.qpn, psn: 0 });
    await connectQp(from.qp, peerOf(to), { ...own, attr: { ...attr, rateControl } });
    await connectQp(to.qp, peerOf(from), { ...own, attr });
    const [requester, responder] = isRead ? [to, from] : [from, to];
    for (let i = 0; i < MESSAGES; i++) {
      requester.qp.postSend({
        opcode: this.#options.operation ?? 'RDMA_WRITE',
        sges: [requester.region.sge()],
        remoteAddr: responder.region.addr,
        rkey: responder.region.rkey,
      });
    }
    this.senders.push(from.qp);
    this.#sourcePorts.push((await from.qp.query()).sourcePort);
    this.#flowKeys.push(to.qp.qpn);
  }

  /** A congestion notification in the name of the flow's receiver, as it would send it, or as somebody forges it. */
  notify(flow: number): void {
    const bytes = new Uint8Array(28 + ICRC_BYTES);
    writeCnp(bytes, 0, this.senders[flow].qpn);
    const [source, destination] = [this.receiver.address, this.sender.address];
    const sourcePort = this.#sourcePorts[flow];
    sealIcrc(new IcrcFlow(source, destination, sourcePort, 4791), bytes, 0, bytes.length, 0, undefined);
    const header = { sourcePort, destinationPort: 4791, ecn: 0, dscp: 48, ipId: 0 };
    (this.sender.link as SimHost).receive({ bytes, offset: 0, length: bytes.length, source, destination, ...header });
  }

  /** Queues one datagram for the slow link; returns when the sender's own link is free again. */
  #enqueue(datagram: RxDatagram, to: SimHost): number {
    const { events } = this;
    const { rateBps, delayNs } = this.#options;
    const bits = (datagram.length + OVERHEAD_BYTES) * 8;
    this.#freeNs = Math.max(this.#freeNs, events.nowNs) + (bits * 1e9) / rateBps;
    this.#queueMaxBytes = Math.max(this.#queueMaxBytes, this.queueBytes);
    events.at(this.#freeNs, () => {
      if (datagram.ecn !== 0 && randomUnit(this.#random) < this.#markProbability()) datagram.ecn = ECN_CE;
      const key = readU24(datagram.bytes, 5);
      this.#carriedBytes.set(key, (this.#carriedBytes.get(key) ?? 0) + bits / 8);
      events.after(delayNs, () => to.receive(datagram));
    });
    return events.nowNs + (bits * 1e9) / HOST_RATE_BPS;
  }

  /** RED on what a departing packet leaves behind. */
  #markProbability(): number {
    const { kminBytes, kmaxBytes, pmax } = this.#options;
    const queue = this.queueBytes;
    if (queue <= kminBytes) return 0;
    return queue > kmaxBytes ? 1 : (pmax * (queue - kminBytes)) / (kmaxBytes - kminBytes);
  }

  get queueBytes(): number {
    return (Math.max(0, this.#freeNs - this.events.nowNs) * this.#options.rateBps) / 8e9;
  }

  /** The longest queue since the last call. */
  takeQueueMaxBytes(): number {
    const max = this.#queueMaxBytes;
    this.#queueMaxBytes = 0;
    return max;
  }

  /** Lets time pass; the rates of the flows meanwhile, bits/s of the link. */
  run(milliseconds: number): number[] {
    const before = new Map(this.#carriedBytes);
    runToRest(this.events, { untilNs: this.events.nowNs + milliseconds * 1e6 });
    return this.#flowKeys.map(
      (key) => (((this.#carriedBytes.get(key) ?? 0) - (before.get(key) ?? 0)) * 8e3) / milliseconds,
    );
  }
}
