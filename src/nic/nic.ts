/**
 * The software NIC: executes commands, demultiplexes what arrives, gives each queue pair its turn to send, and keeps the timers.
 *
 * It is sans-IO. A driver feeds it received datagrams, doorbells and the time, and takes batches to send; calling any of it once too
 * often does no harm. Received packets pass the checks of IBTA vol. 1 §9.6 and annex A17 in a fixed order; each failure has a counter, so
 * that received = accepted + the sum of the drops.
 *
 * A queue pair whose pacer says "later" leaves the round-robin until then, and one whose priority the link partner has paused leaves it
 * until the pause ends: neither keeps others waiting. Congestion notifications have a queue of their own and go first.
 */

import { RoceError } from '../core/errors.js';
import { type RandomSource, randomInt } from '../core/random.js';
import { KeyTable } from '../memory/key-table.js';
import { IpAddress } from '../packet/address.js';
import { checkIcrc, ICRC_BAD, ICRC_OK_ID_SOLVED, IcrcFlow } from '../packet/icrc.js';
import { CNP } from '../packet/opcode.js';
import { PARSE_OK, PARSE_REASONS, parseRoce, RocePacket } from '../packet/roce.js';
import { ECN_CE, type Port, ROCE_UDP_PORT, type RxDatagram, type TxBatch } from '../port/datagram.js';
import type { Paced, QpHost, ReceiveSource } from '../qp/host.js';
import { flowSourcePort, Path, type PeerBudget } from '../qp/path.js';
import { CNP_DSCP, type Connection, type QueuePairOptions, RcQueuePair } from '../qp/rc-queue-pair.js';
import { UdQueuePair } from '../qp/ud-queue-pair.js';
import type { CommandRing } from '../ring/command-ring.js';
import {
  type CommandArgs,
  type CommandName,
  type CommandResult,
  QP_ATTR_DEST_QPN,
  QP_ATTR_INFLIGHT,
  QP_ATTR_STATE,
} from '../ring/commands.js';
import { CompletionRing } from '../ring/completion-ring.js';
import { COUNTER } from '../ring/counters.js';
import { EVENT_COMMAND_DONE, QPS_ERR, QPS_RESET, QPT_GSI, QPT_RC, QPT_UD } from '../ring/enums.js';
import type { EventRing } from '../ring/event-ring.js';
import { RecvQueue, SendQueue } from '../ring/work-queue.js';
import { CnpQueue } from './cnp-queue.js';
import { Deadlines } from './deadlines.js';
import { PacingQueue } from './pacing-queue.js';
import { PriorityPause } from './priority-pause.js';
import { applyAttributes, checkRanges, initialAttributes } from './qp-attributes.js';
import { NicCompletionQueue, NicSharedReceiveQueue, OwnReceives } from './queues.js';
import { RunQueue } from './run-queue.js';

type AnyQueuePair = RcQueuePair | UdQueuePair;

const GSI_QPN = 1;
/** QPNs below are special or conventionally left alone (rxe begins at 16 as well). */
const QPN_MIN = 16;
const QPN_MAX = 0xfffffe;
/** A freed QPN is not given out again while this many others have been freed since: late packets must find nobody. */
const QPN_QUARANTINE = 256;
/** Packets one QP may send before the next has its turn. */
const BURST_PACKETS = 16;
/** Packets in flight to a peer that did not tell what its socket can hold: what Linux Soft-RoCE allows itself. */
const INFLIGHT_DEFAULT_PACKETS = 128;
/** ICRC flows remembered for datagrams of unconnected senders. */
const UD_FLOWS_MAX = 256;
/** How late a paced flow may be served and still catch up, where the driver does not say: a few packets of others on the wire. */
const PACING_CATCH_UP_NS = 10_000;
const ALL_PARTITIONS = 0x7fff;

const UNLIMITED = Number.POSITIVE_INFINITY;
const FIRST_PAUSE_COUNTER = COUNTER.rx_prio0_pause;
const RX_PACKETS = COUNTER.rx_packets;
const RX_BYTES = COUNTER.rx_bytes;
const RX_ACCEPTED = COUNTER.rx_accepted;
const TX_PACKETS = COUNTER.tx_packets;
const TX_BYTES = COUNTER.tx_bytes;

/** What the NIC needs to know of the port its datagrams leave by. */
export type PortFacts = Pick<
  Port,
  'address' | 'udpPort' | 'pathMtuMax' | 'ipIdPolicy' | 'fixedSourcePort' | 'receiveBudgetPackets'
>;

/** What a driver may set to suit its clock and network. */
export interface NicTuning {
  /** How late a paced flow may be served and still catch up. Default 10 us; as long as timers are coarse, where they are. */
  readonly pacingCatchUpNs?: number;
  /** The priority (0..7) of packets with this DSCP, for PFC. Default: its upper three bits. */
  readonly priorityOfDscp?: (dscp: number) => number;
}

export interface NicOptions {
  readonly port: PortFacts;
  /** Keys and QPNs come from here: unpredictable in production, seeded in simulations. */
  readonly random: RandomSource;
  readonly counters: Float64Array;
  readonly events: EventRing;
  /** Finds attached memory by its number; undefined when there is none. */
  readonly memory: (id: number) => ArrayBufferLike | undefined;
  /** The same for the bytes of regions, if there is a way to copy them faster. Default: {@link memory}. */
  readonly regionMemory?: (id: number) => ArrayBufferLike | undefined;
  /** The event ring has something new. Called from inside the NIC: the driver must not call back at once. */
  readonly onEvent: () => void;
  readonly tuning: NicTuning;
}

interface AddressHandle {
  readonly pd: number;
  readonly path: Path;
}

export class Nic implements QpHost {
  readonly keys: KeyTable;
  readonly counters: Float64Array;
  /** Malformed packets by parse reason, in the order of PARSE_REASONS. */
  readonly parseDrops = new Float64Array(PARSE_REASONS.length);
  readonly #options: NicOptions;
  readonly #port: PortFacts;
  readonly #random: RandomSource;
  readonly #qps = new Map<number, AnyQueuePair>();
  readonly #cqs = new Map<number, NicCompletionQueue>();
  readonly #srqs = new Map<number, NicSharedReceiveQueue>();
  readonly #ahs = new Map<number, AddressHandle>();
  /** PD handle to the number of QPs, SRQs and address handles in it. */
  readonly #pds = new Map<number, number>();
  readonly #budgets = new Map<string, PeerBudget>();
  readonly #freedQpns: number[] = [];
  readonly #runQueue = new RunQueue<AnyQueuePair>();
  readonly #deadlines = new Deadlines();
  readonly #pacing = new PacingQueue();
  readonly #pauses = new PriorityPause<AnyQueuePair>((qp) => this.#resume(qp));
  readonly #cnps = new CnpQueue();
  readonly #priorityOfDscp: (dscp: number) => number;
  readonly #cnpPriority: number;
  readonly pacingCatchUpNs: number;
  readonly #packet = new RocePacket();
  readonly #udFlows = new Map<string, IcrcFlow>();
  #nextHandle = 1;
  #ipId = 0;
  /** The time of the commands being executed. */
  #commandNs = 0;

  constructor(options: NicOptions) {
    this.#options = options;
    this.#port = options.port;
    this.#random = options.random;
    this.counters = options.counters;
    this.keys = new KeyTable(options.random);
    this.pacingCatchUpNs = options.tuning.pacingCatchUpNs ?? PACING_CATCH_UP_NS;
    this.#priorityOfDscp = options.tuning.priorityOfDscp ?? ((dscp) => dscp >> 3);
    this.#cnpPriority = this.#priorityOfDscp(CNP_DSCP);
  }

  // ---- what queue pairs ask of their host

  nextIpId(): number {
    if (this.#port.ipIdPolicy !== 'sequential') return 0;
    const id = this.#ipId;
    this.#ipId = (id + 1) & 0xffff;
    return id;
  }

  schedule(qp: AnyQueuePair): void {
    if (qp.scheduled) return;
    qp.scheduled = true;
    this.#runQueue.push(qp);
  }

  armDeadline(qp: AnyQueuePair): void {
    this.#deadlines.arm(qp);
  }

  resumeAt(qp: Paced, timeNs: number): void {
    this.#pacing.add(qp, timeNs);
  }

  cancelResume(qp: Paced): void {
    this.#pacing.remove(qp);
  }

  raise(type: number, id: number): void {
    if (!this.#options.events.push(type, id)) this.counters[COUNTER.events_lost]++;
    this.#options.onEvent();
  }

  // ---- what drivers call

  /** Executes the commands before index `end`; without it, all. */
  executeCommands(ring: CommandRing, now: number, end?: number): void {
    this.#commandNs = now;
    const done = ring.drain((name, args) => this.#execute(name, args), end);
    if (done > 0) this.raise(EVENT_COMMAND_DONE, 0);
  }

  doorbell(qpn: number): void {
    this.#qps.get(qpn)?.doorbell();
  }

  /** When it is not known whose doorbell rang. */
  doorbellAll(): void {
    for (const qp of this.#qps.values()) qp.doorbell();
  }

  /** True while some QP may have something to send. */
  get hasWork(): boolean {
    return !this.#runQueue.isEmpty || this.#mayNotify;
  }

  get #mayNotify(): boolean {
    return !this.#cnps.isEmpty && !this.#pauses.isPaused(this.#cnpPriority);
  }

  /**
   * The link partner pauses a priority (0..7) for that long, counted from now, or lifts the pause (0): one class of a PFC frame. A quantum
   * is 512 bit times of the link.
   */
  pause(priority: number, durationNs: number, now: number): void {
    this.counters[FIRST_PAUSE_COUNTER + priority]++;
    this.#pauses.pause(priority, durationNs, now);
  }

  /** Fills the batch with packets, taking QPs in turn; returns how many were added. */
  transmit(batch: TxBatch, now: number): number {
    const before = batch.count;
    if (this.#mayNotify) this.counters[COUNTER.np_cnp_sent] += this.#cnps.emit(batch, now);
    while (batch.count < batch.capacity) {
      const qp = this.#runQueue.shift();
      if (qp === undefined) break;
      if (this.#pauses.isAny && this.#holdBack(qp)) continue;
      qp.scheduled = false;
      let more = true;
      for (let n = 0; more && n < BURST_PACKETS && batch.count < batch.capacity; n++) more = qp.emit(batch, now);
      if (more) this.schedule(qp);
    }
    const { counters } = this;
    for (let slot = before; slot < batch.count; slot++) counters[TX_BYTES] += batch.lengths[slot];
    counters[TX_PACKETS] += batch.count - before;
    return batch.count - before;
  }

  /** The pause of its priority is over. */
  #resume(qp: AnyQueuePair): void {
    qp.scheduled = false;
    this.schedule(qp);
  }

  /** True when the QP's priority is paused: it waits for the end of the pause, and counts as scheduled meanwhile. */
  #holdBack(qp: AnyQueuePair): boolean {
    const dscp = qp instanceof RcQueuePair ? (qp.connection?.path.dscp ?? 0) : qp.nextDscp;
    const priority = this.#priorityOfDscp(dscp);
    if (!this.#pauses.isPaused(priority)) return false;
    this.#pauses.hold(priority, qp);
    return true;
  }

  /** Not later than the next time `onDeadline` has work; Infinity when there is none. */
  get nextDeadlineNs(): number {
    return Math.min(this.#deadlines.nextNs, this.#pacing.nextNs, this.#pauses.nextNs);
  }

  onDeadline(now: number): void {
    this.#deadlines.fire(now);
    this.#pacing.release(now);
    this.#pauses.expire(now);
  }

  receive(datagram: RxDatagram, now: number): void {
    const { counters } = this;
    const packet = this.#packet;
    counters[RX_PACKETS]++;
    counters[RX_BYTES] += datagram.length;
    const reason = parseRoce(datagram.bytes, datagram.offset, datagram.length, packet);
    if (reason !== PARSE_OK) {
      this.parseDrops[reason]++;
      counters[COUNTER.rx_drop_parse]++;
      return;
    }
    const qp = this.#qps.get(packet.destQpn);
    if (qp === undefined) {
      counters[COUNTER.rx_drop_no_qp]++;
      return;
    }
    if (qp instanceof RcQueuePair) this.#receiveConnected(qp, packet, datagram, now);
    else this.#receiveUnconnected(qp, packet, datagram);
  }

  #receiveConnected(qp: RcQueuePair, packet: RocePacket, datagram: RxDatagram, now: number): void {
    const { counters } = this;
    if (!qp.speaks(packet)) {
      counters[COUNTER.rx_drop_qp_type]++;
      return;
    }
    if (!qp.accepts(packet)) {
      counters[COUNTER.rx_drop_qp_state]++;
      return;
    }
    const { path } = qp;
    if (!path.remote.equals(datagram.source) || !path.local.equals(datagram.destination)) {
      counters[COUNTER.rx_drop_address]++;
      return;
    }
    if ((packet.pkey & 0x7fff) !== ALL_PARTITIONS) {
      counters[COUNTER.rx_drop_pkey]++;
      return;
    }
    if (!this.#icrcHolds(path.receiveFlow(datagram.sourcePort), datagram)) return;
    this.#accept(datagram);
    if (packet.opcode === CNP) {
      counters[qp.receiveCnp(packet, datagram.length, now) ? COUNTER.rp_cnp_handled : COUNTER.rp_cnp_ignored]++;
      return;
    }
    if (datagram.ecn === ECN_CE && qp.congestion.notification.onMarked(now)) this.#cnps.owe(qp);
    qp.receive(packet, datagram.bytes, datagram.offset, datagram.length, now);
  }

  #receiveUnconnected(qp: UdQueuePair, packet: RocePacket, datagram: RxDatagram): void {
    const { counters } = this;
    if (packet.info.transport !== 'UD') {
      counters[COUNTER.rx_drop_qp_type]++;
      return;
    }
    if (!qp.accepts()) {
      counters[COUNTER.rx_drop_qp_state]++;
      return;
    }
    if ((packet.pkey & 0x7fff) !== ALL_PARTITIONS) {
      counters[COUNTER.rx_drop_pkey]++;
      return;
    }
    if (packet.qkey !== qp.attributes.qkey) {
      counters[COUNTER.rx_drop_qkey]++;
      return;
    }
    if (!this.#icrcHolds(this.#udFlow(datagram), datagram)) return;
    this.#accept(datagram);
    qp.receive(packet, datagram);
  }

  #accept(datagram: RxDatagram): void {
    this.counters[RX_ACCEPTED]++;
    if (datagram.ecn === ECN_CE) this.counters[COUNTER.np_ecn_marked_roce_packets]++;
  }

  #icrcHolds(flow: IcrcFlow, datagram: RxDatagram): boolean {
    const verdict = checkIcrc(flow, datagram.bytes, datagram.offset, datagram.length, datagram.ipId);
    if (verdict === ICRC_BAD) {
      this.counters[COUNTER.rx_icrc_errors]++;
      return false;
    }
    if (verdict === ICRC_OK_ID_SOLVED) this.counters[COUNTER.rx_icrc_id_solved]++;
    return true;
  }

  #udFlow(datagram: RxDatagram): IcrcFlow {
    const key = `${datagram.source.text} ${datagram.sourcePort}`;
    let flow = this.#udFlows.get(key);
    if (flow === undefined) {
      if (this.#udFlows.size >= UD_FLOWS_MAX) this.#udFlows.clear();
      flow = new IcrcFlow(datagram.source, datagram.destination, datagram.sourcePort, this.#port.udpPort);
      this.#udFlows.set(key, flow);
    }
    return flow;
  }

  /** The rates at which queue pairs under rate control may send now, for whoever watches. Walks all queue pairs. */
  visitRates(now: number, visit: (qpn: number, rateBps: number, alpha: number) => void): void {
    for (const qp of this.#qps.values()) {
      if (qp instanceof UdQueuePair) continue;
      const { rate } = qp.congestion;
      const rateBps = rate.rateBps(now);
      if (rateBps !== UNLIMITED) visit(qp.qpn, rateBps, rate.alpha(now));
    }
  }

  // ---- commands

  /** Executes one command. Throws RoceError to refuse it; nothing has changed then. */
  #execute<N extends CommandName>(name: N, args: CommandArgs<N>): CommandResult<N> {
    const handler = this.#handlers[name] as (args: CommandArgs<N>) => CommandResult<N>;
    return handler(args);
  }

  readonly #handlers: { readonly [N in CommandName]: (args: CommandArgs<N>) => CommandResult<N> } = {
    queryDevice: () => ({
      gid: this.#port.address.gid,
      udpPort: this.#port.udpPort,
      pathMtuMax: this.#port.pathMtuMax,
      receiveBudgetPackets: Math.min(this.#port.receiveBudgetPackets, 0xffffffff),
    }),
    allocPd: () => {
      const pd = this.#nextHandle++;
      this.#pds.set(pd, 0);
      return { pd };
    },
    deallocPd: ({ pd }) => {
      const users = this.#pdUsers(pd);
      if (users > 0 || this.keys.ownsAny(pd)) {
        throw new RoceError(
          'ERR_ROCE_BUSY',
          'the protection domain still has objects',
          'close its QPs, MRs and MWs first',
        );
      }
      this.#pds.delete(pd);
      return {};
    },
    regMr: ({ pd, memory, offsetBytes, lengthBytes, iova, access }) => {
      this.#pdUsers(pd);
      const bytes = this.#attached(memory, offsetBytes, lengthBytes);
      const high = Number(iova >> 32n);
      const region = this.keys.register(pd, bytes, high, Number(iova & 0xffffffffn), access);
      return { mr: region.handle, lkey: region.key, rkey: region.key };
    },
    allocFastRegMr: ({ pd, memory, offsetBytes, lengthBytes }) => {
      this.#pdUsers(pd);
      const region = this.keys.allocFastRegister(pd, this.#attached(memory, offsetBytes, lengthBytes));
      return { mr: region.handle, lkey: region.key };
    },
    deregMr: ({ mr }) => {
      this.keys.deregister(mr);
      return {};
    },
    allocMw: ({ pd, type }) => {
      this.#pdUsers(pd);
      if (type !== 1 && type !== 2)
        throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `memory windows have type 1 or 2, not ${type}`);
      const window = this.keys.allocWindow(pd, type);
      return { mw: window.handle, rkey: window.key };
    },
    deallocMw: ({ mw }) => {
      this.keys.freeWindow(mw);
      return {};
    },
    createCq: ({ memory }) => {
      const handle = this.#nextHandle++;
      const ring = new CompletionRing(this.#memory(memory));
      this.#cqs.set(
        handle,
        new NicCompletionQueue(
          handle,
          ring,
          (type, id) => this.raise(type, id),
          (cq) => this.#onCqOverrun(cq),
        ),
      );
      return { cq: handle };
    },
    destroyCq: ({ cq }) => {
      if (this.#cq(cq).users > 0) throw new RoceError('ERR_ROCE_BUSY', 'queue pairs still complete into this CQ');
      this.#cqs.delete(cq);
      return {};
    },
    createSrq: ({ pd, memory }) => {
      this.#pdUsers(pd);
      const handle = this.#nextHandle++;
      const ring = new RecvQueue(this.#memory(memory));
      this.#srqs.set(handle, new NicSharedReceiveQueue(handle, pd, ring, (type, id) => this.raise(type, id)));
      this.#pds.set(pd, this.#pdUsers(pd) + 1);
      return { srq: handle };
    },
    modifySrq: ({ srq, limit }) => {
      this.#srq(srq).limit = limit;
      return {};
    },
    destroySrq: ({ srq }) => {
      const { users, pd } = this.#srq(srq);
      if (users > 0) throw new RoceError('ERR_ROCE_BUSY', 'queue pairs still receive from this SRQ');
      this.#srqs.delete(srq);
      this.#pds.set(pd, this.#pdUsers(pd) - 1);
      return {};
    },
    createQp: (args) => this.#createQp(args),
    modifyQp: (args) => this.#modifyQp(args),
    queryQp: ({ qpn }) => {
      const qp = this.#qp(qpn);
      const { attributes, nextPsns } = qp;
      const common = { ...attributes, ...nextPsns, curState: attributes.state };
      if (qp instanceof UdQueuePair) {
        return {
          ...common,
          sourcePort: 0,
          rateBps: UNLIMITED,
          targetRateBps: UNLIMITED,
          windowBytes: UNLIMITED,
          alpha: Number.NaN,
        };
      }
      const { rate } = qp.congestion;
      const now = this.#commandNs;
      return {
        ...common,
        sourcePort: qp.connection?.path.sourcePort ?? 0,
        rateBps: rate.rateBps(now),
        targetRateBps: rate.targetRateBps(now),
        windowBytes: rate.windowBytes(now),
        alpha: rate.alpha(now),
      };
    },
    destroyQp: ({ qpn }) => {
      this.#destroyQp(this.#qp(qpn));
      return {};
    },
    watchQp: ({ qpn, memory }) => {
      const qp = this.#qp(qpn);
      if (!(qp instanceof RcQueuePair)) throw new RoceError('ERR_ROCE_UNSUPPORTED', 'only RC queue pairs are watched');
      qp.watch(this.#memory(memory));
      return {};
    },
    inspectQp: ({ qpn }) => {
      const qp = this.#qp(qpn);
      if (!(qp instanceof RcQueuePair))
        throw new RoceError('ERR_ROCE_UNSUPPORTED', 'only RC queue pairs are inspected');
      return qp.progress;
    },
    createAh: ({ pd, remoteGid, remoteUdpPort, dscp }) => {
      this.#pdUsers(pd);
      const handle = this.#nextHandle++;
      const path = this.#pathTo(remoteGid, remoteUdpPort, dscp, 0, 0xc000 | (handle & 0x3fff));
      this.#ahs.set(handle, { pd, path });
      this.#pds.set(pd, this.#pdUsers(pd) + 1);
      return { ah: handle };
    },
    destroyAh: ({ ah }) => {
      const handle = this.#ahs.get(ah);
      if (handle === undefined) throw new RoceError('ERR_ROCE_NOT_FOUND', 'no such address handle');
      this.#ahs.delete(ah);
      this.#pds.set(handle.pd, this.#pdUsers(handle.pd) - 1);
      return {};
    },
  };

  #pdUsers(pd: number): number {
    const users = this.#pds.get(pd);
    if (users === undefined) throw new RoceError('ERR_ROCE_NOT_FOUND', 'no such protection domain');
    return users;
  }

  #cq(handle: number): NicCompletionQueue {
    const cq = this.#cqs.get(handle);
    if (cq === undefined) throw new RoceError('ERR_ROCE_NOT_FOUND', 'no such completion queue');
    return cq;
  }

  #srq(handle: number): NicSharedReceiveQueue {
    const srq = this.#srqs.get(handle);
    if (srq === undefined) throw new RoceError('ERR_ROCE_NOT_FOUND', 'no such shared receive queue');
    return srq;
  }

  #qp(qpn: number): AnyQueuePair {
    const qp = this.#qps.get(qpn);
    if (qp === undefined) throw new RoceError('ERR_ROCE_NOT_FOUND', `no queue pair with QPN ${qpn}`);
    return qp;
  }

  #memory(id: number): ArrayBufferLike {
    const memory = this.#options.memory(id);
    if (memory === undefined) throw new RoceError('ERR_ROCE_NOT_FOUND', 'the NIC cannot reach this memory');
    return memory;
  }

  #attached(id: number, offsetBytes: number, lengthBytes: number): Uint8Array {
    const memory = this.#options.regionMemory?.(id) ?? this.#memory(id);
    if (lengthBytes > memory.byteLength || offsetBytes > memory.byteLength - lengthBytes) {
      throw new RoceError('ERR_ROCE_OUT_OF_RANGE', 'the region reaches beyond its buffer');
    }
    return new Uint8Array(memory, offsetBytes, lengthBytes);
  }

  #createQp(args: CommandArgs<'createQp'>): CommandResult<'createQp'> {
    const pdUsers = this.#pdUsers(args.pd);
    const sendCq = this.#cq(args.sendCq);
    const recvCq = this.#cq(args.recvCq);
    const srq = args.srq === 0 ? undefined : this.#srq(args.srq);
    if (srq !== undefined && srq.pd !== args.pd) {
      throw new RoceError('ERR_ROCE_CONFLICT', 'the SRQ belongs to another protection domain');
    }
    const receives: ReceiveSource = srq ?? new OwnReceives(new RecvQueue(this.#memory(args.rqMemory)));
    const options: QueuePairOptions = {
      host: this,
      qpn: args.type === QPT_GSI ? GSI_QPN : this.#newQpn(),
      pd: args.pd,
      sendCq,
      recvCq,
      receives,
      sendQueue: new SendQueue(this.#memory(args.sqMemory)),
      signalAll: args.signalAll !== 0,
      attributes: initialAttributes(),
    };
    if (this.#qps.has(options.qpn)) throw new RoceError('ERR_ROCE_BUSY', 'QP1 exists already: a device has one');
    this.#qps.set(options.qpn, this.#newQueuePair(args.type, options));
    this.#pds.set(args.pd, pdUsers + 1);
    sendCq.users++;
    recvCq.users++;
    if (srq !== undefined) srq.users++;
    return { qpn: options.qpn };
  }

  #newQueuePair(type: number, options: QueuePairOptions): AnyQueuePair {
    if (type === QPT_RC) return new RcQueuePair(options);
    if (type !== QPT_UD && type !== QPT_GSI) {
      throw new RoceError('ERR_ROCE_UNSUPPORTED', `QP type ${type} is not supported`, 'RC, UD and GSI are');
    }
    return new UdQueuePair(options, type, {
      mtuBytes: this.#port.pathMtuMax,
      pathOf: (ah, pd) => {
        const handle = this.#ahs.get(ah);
        return handle?.pd === pd ? handle.path : undefined;
      },
    });
  }

  #newQpn(): number {
    for (;;) {
      const qpn = randomInt(this.#random, QPN_MIN, QPN_MAX);
      if (!this.#qps.has(qpn) && !this.#freedQpns.includes(qpn)) return qpn;
    }
  }

  #destroyQp(qp: AnyQueuePair): void {
    if (qp instanceof RcQueuePair) this.#releaseBudget(qp.connection);
    qp.destroy();
    this.#deadlines.forget(qp);
    this.#qps.delete(qp.qpn);
    this.#freedQpns.push(qp.qpn);
    if (this.#freedQpns.length > QPN_QUARANTINE) this.#freedQpns.shift();
    this.#pds.set(qp.pd, this.#pdUsers(qp.pd) - 1);
    (qp.sendCq as NicCompletionQueue).users--;
    (qp.recvCq as NicCompletionQueue).users--;
    if (qp.receives instanceof NicSharedReceiveQueue) qp.receives.users--;
  }

  #modifyQp(args: CommandArgs<'modifyQp'>): CommandResult<'modifyQp'> {
    const qp = this.#qp(args.qpn);
    const { mask } = args;
    if ((mask & QP_ATTR_STATE) === 0) args.state = qp.attributes.state;
    checkRanges(args, mask, this.#port.pathMtuMax);
    const apply = () => applyAttributes(qp.attributes, args, mask);
    if (qp instanceof UdQueuePair) qp.modify(mask, args, apply);
    else {
      const before = qp.connection;
      qp.modify(mask, args, apply, () => this.#connect(qp, args, mask));
      if (qp.connection !== before) this.#releaseBudget(before);
    }
    return {};
  }

  #connect(qp: RcQueuePair, args: CommandArgs<'modifyQp'>, mask: number): Connection {
    const destQpn = (mask & QP_ATTR_DEST_QPN) !== 0 ? args.destQpn : qp.attributes.destQpn;
    const sourcePort = flowSourcePort(qp.qpn, destQpn);
    const path = this.#pathTo(args.remoteGid, args.remoteUdpPort, args.dscp, args.ecn, sourcePort);
    const key = `${path.remote.text} ${path.remoteUdpPort}`;
    let budget = this.#budgets.get(key);
    if (budget === undefined) {
      budget = { limitPackets: INFLIGHT_DEFAULT_PACKETS, qps: 0 };
      this.#budgets.set(key, budget);
    }
    if ((mask & QP_ATTR_INFLIGHT) !== 0) budget.limitPackets = args.inflightPackets;
    // READ responses come to us: our own buffer is a limit as well.
    budget.limitPackets = Math.max(2, Math.min(budget.limitPackets, this.#port.receiveBudgetPackets));
    budget.qps++;
    return { path, budget };
  }

  #releaseBudget(connection: Connection | undefined): void {
    if (connection === undefined) return;
    const { budget, path } = connection;
    budget.qps--;
    if (budget.qps === 0) this.#budgets.delete(`${path.remote.text} ${path.remoteUdpPort}`);
  }

  #pathTo(gid: Uint8Array, udpPort: number, dscp: number, ecn: number, entropyPort: number): Path {
    const remote = IpAddress.fromBytes(gid);
    const local = this.#port.address;
    if (remote.family !== local.family) {
      throw new RoceError(
        'ERR_ROCE_ADDRESS_FAMILY',
        `${remote} cannot be reached from ${local}: other address family`,
        'open the device on an address of the same family',
      );
    }
    return new Path({
      local,
      remote,
      localUdpPort: this.#port.udpPort,
      sourcePort: this.#port.fixedSourcePort ?? entropyPort,
      remoteUdpPort: udpPort === 0 ? ROCE_UDP_PORT : udpPort,
      dscp,
      ecn,
    });
  }

  /** A full CQ loses completions: every QP that uses it stops. */
  #onCqOverrun(cq: NicCompletionQueue): void {
    for (const qp of this.#qps.values()) {
      if (qp.sendCq !== cq && qp.recvCq !== cq) continue;
      if (qp.attributes.state !== QPS_ERR && qp.attributes.state !== QPS_RESET) qp.enterError(false);
    }
  }
}
