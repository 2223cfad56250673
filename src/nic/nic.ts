/**
 * The software NIC: schedules the queue pairs that send, keeps the timers, and joins the parts: commands
 * (`command-table.ts`), received packets (`receive-path.ts`) and peers (`peer-paths.ts`).
 *
 * It has no I/O. A driver passes received datagrams, doorbells and the time to it, and takes batches to send;
 * superfluous calls are harmless.
 *
 * A queue pair that waits for its pacer leaves the round-robin until then; one whose priority the link partner has
 * paused leaves it until the pause ends. Neither delays others. Congestion notifications have a separate queue and go
 * first.
 */

import type { RandomSource } from '../core/random.js';
import { CreditScheduler } from '../dcqcn/credit-scheduler.js';
import type { RateControl } from '../dcqcn/rate-control.js';
import type { ForeignMemory } from '../memory/foreign-memory.js';
import { KeyTable } from '../memory/key-table.js';
import type { CommandRing } from '../memory/ring/command-ring.js';
import type { QpAttributes } from '../memory/ring/commands.js';
import { COUNTER } from '../memory/ring/counters.js';
import { EVENT_COMMAND_DONE } from '../memory/ring/enums.js';
import type { EventRing } from '../memory/ring/event-ring.js';
import type { IcrcFlow } from '../packet/icrc.js';
import type { RxDatagram, TxBatch } from '../port/datagram.js';
import type { NotificationSender, Paced, QpHost, Timed } from '../qp/host.js';
import type { NicQueuePair } from '../qp/nic-queue-pair.js';
import { CNP_DSCP, type ConnectedPeer, type Path } from '../qp/path.js';
import { NicContext } from '../retransmit/nic-context.js';
import { CnpQueue } from './cnp-queue.js';
import { CommandTable } from './command-table.js';
import { Deadlines } from './deadlines.js';
import { PacingQueue } from './pacing-queue.js';
import { PeerPaths } from './peer-paths.js';
import type { PortFacts } from './port-facts.js';
import { PriorityPause } from './priority-pause.js';
import { QueuePairNumbers } from './queue-pair-numbers.js';
import { ReceivePath } from './receive-path.js';
import { RunQueue } from './run-queue.js';
import { SchedulingDelays } from './scheduling-delays.js';

/** Packets one QP may send before the next one does. */
const BURST_PACKETS = 16;
/**
 * Default for how late a paced flow may be served and still catch up: the time of a few packets of others.
 */
const PACING_CATCH_UP_NS = 10_000;

const UNLIMITED = Number.POSITIVE_INFINITY;
const FIRST_PAUSE_COUNTER = COUNTER.rx_prio0_pause;
const TX_PACKETS = COUNTER.tx_packets;
const TX_BYTES = COUNTER.tx_bytes;

export interface NicTuning {
  readonly pacingCatchUpNs?: number;
  /** Default: its upper three bits. */
  readonly priorityOfDscp?: (dscp: number) => number;
  /**
   * False if packets have the length of their payload, but not its bytes: nothing is copied from and to memory,
   * and the ICRC is neither made nor checked.
   */
  readonly carriesPayload?: boolean;
}

export interface NicOptions {
  readonly port: PortFacts;
  /** Keys and QPNs come from here: unpredictable in production, seeded in simulations. */
  readonly random: RandomSource;
  readonly counters: Float64Array;
  readonly events: EventRing;
  /** Finds attached memory by its number; undefined when there is none. */
  readonly memory: (id: number) => ArrayBufferLike | undefined;
  readonly regionMemory?: (id: number) => ArrayBufferLike | undefined;
  /** Memory outside this process by its number. Default: there is none. */
  readonly foreignMemory?: (id: number) => ForeignMemory | undefined;
  /** Called from inside the NIC: the driver must not call back at once. */
  readonly onEvent: () => void;
  readonly tuning: NicTuning;
}

export class Nic implements QpHost {
  readonly keys: KeyTable;
  readonly counters: Float64Array;
  readonly context = new NicContext();
  readonly creditScheduler = new CreditScheduler();
  readonly pathMtuMax: number;
  readonly pacingCatchUpNs: number;
  readonly carriesPayload: boolean;
  readonly #options: NicOptions;
  protected readonly queuePairs = new Map<number, NicQueuePair>();
  readonly #paths: PeerPaths;
  readonly #numbers: QueuePairNumbers;
  readonly #commands: CommandTable;
  readonly #receivePath: ReceivePath;
  readonly #runQueue = new RunQueue<NicQueuePair>();
  readonly #deadlines = new Deadlines();
  readonly #pacing = new PacingQueue();
  readonly #pauses = new PriorityPause<NicQueuePair>((qp) => this.#resume(qp));
  readonly #cnps = new CnpQueue();
  readonly #delays = new SchedulingDelays();
  readonly #priorityOfDscp: (dscp: number) => number;
  readonly #cnpPriority: number;
  #ipId = 0;

  constructor(options: NicOptions) {
    const { port, random, counters, memory, regionMemory, foreignMemory, tuning } = options;
    this.#options = options;
    this.counters = counters;
    this.keys = new KeyTable(random);
    this.pathMtuMax = port.pathMtuMax;
    this.pacingCatchUpNs = tuning.pacingCatchUpNs ?? PACING_CATCH_UP_NS;
    this.#priorityOfDscp = tuning.priorityOfDscp ?? ((dscp) => dscp >> 3);
    this.#cnpPriority = this.#priorityOfDscp(CNP_DSCP);
    this.carriesPayload = tuning.carriesPayload ?? true;
    this.#paths = new PeerPaths(port, this.carriesPayload);
    this.#numbers = new QueuePairNumbers(random);
    this.#receivePath = new ReceivePath(counters, this.queuePairs, this.carriesPayload);
    this.#commands = new CommandTable({
      host: this,
      port,
      keys: this.keys,
      paths: this.#paths,
      newQpn: () => this.newQpn(),
      queuePairs: this.queuePairs,
      memory,
      regionMemory: regionMemory ?? memory,
      foreignMemory: foreignMemory ?? (() => undefined),
      forget: (qp) => {
        this.#deadlines.forget(qp);
        this.#numbers.free(qp.qpn);
      },
    });
  }

  /** The number of the next queue pair. */
  protected newQpn(): number {
    return this.#numbers.take((qpn) => this.queuePairs.has(qpn));
  }

  /** Malformed packets by parse reason, in the order of PARSE_REASONS. */
  get parseDrops(): Float64Array {
    return this.#receivePath.parseDrops;
  }

  nextIpId(): number {
    if (this.#options.port.ipIdPolicy !== 'sequential') return 0;
    const id = this.#ipId;
    this.#ipId = (id + 1) & 0xffff;
    return id;
  }

  schedule(qp: NicQueuePair): void {
    if (qp.scheduled) return;
    qp.scheduled = true;
    this.#runQueue.push(qp);
  }

  armDeadline(timed: Timed): void {
    this.#deadlines.arm(timed);
  }

  schedulingDelayNs(stampNs: number): number {
    return this.#delays.of(stampNs);
  }

  resumeAt(qp: Paced, timeNs: number): void {
    this.#pacing.add(qp, timeNs);
  }

  cancelResume(qp: Paced): void {
    this.#pacing.remove(qp);
  }

  notifyCongestion(qp: NotificationSender): void {
    this.#cnps.add(qp);
  }

  connect(qpn: number, attributes: QpAttributes): ConnectedPeer {
    return this.#paths.connect(qpn, attributes);
  }

  disconnect(connection: ConnectedPeer): void {
    this.#paths.disconnect(connection);
  }

  pathOf(ah: number, pd: number): Path | undefined {
    return this.#commands.pathOf(ah, pd);
  }

  datagramFlow(datagram: RxDatagram): IcrcFlow {
    return this.#paths.datagramFlow(datagram);
  }

  raise(type: number, id: number): void {
    if (!this.#options.events.push(type, id)) this.counters[COUNTER.events_lost]++;
    this.#options.onEvent();
  }

  executeCommands(ring: CommandRing, now: number, end?: number): void {
    const done = ring.drain((name, args) => this.#commands.execute(name, args, now), end);
    if (done > 0) this.raise(EVENT_COMMAND_DONE, 0);
  }

  doorbell(qpn: number): void {
    this.queuePairs.get(qpn)?.doorbell();
  }

  doorbellAll(): void {
    for (const qp of this.queuePairs.values()) qp.doorbell();
  }

  get hasWork(): boolean {
    return !this.#runQueue.isEmpty || this.#mayNotify;
  }

  get #mayNotify(): boolean {
    return !this.#cnps.isEmpty && !this.#pauses.isPaused(this.#cnpPriority);
  }

  /**
   * The link partner pauses a priority (0..7) for that long, counted from now, or lifts the pause (0): one class of a
   * PFC frame. A quantum is 512 bit times of the link.
   */
  pause(priority: number, durationNs: number, now: number): void {
    this.counters[FIRST_PAUSE_COUNTER + priority]++;
    this.#pauses.pause(priority, durationNs, now);
  }

  /** Fills the batch with packets, round-robin over the QPs; returns how many were added. */
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

  /**
   * The batch that {@link transmit} filled at `now` left only `delayNs` later: its timers begin then.
   */
  onSchedulingDelay(now: number, delayNs: number): void {
    this.#delays.add(now, delayNs);
  }

  #resume(qp: NicQueuePair): void {
    qp.scheduled = false;
    this.schedule(qp);
  }

  /** True when the QP's priority is paused: it waits for the end of the pause, and counts as scheduled until then. */
  #holdBack(qp: NicQueuePair): boolean {
    const priority = this.#priorityOfDscp(qp.nextDscp);
    if (!this.#pauses.isPaused(priority)) return false;
    this.#pauses.hold(priority, qp);
    return true;
  }

  /** Not later than the next time `onDeadline` has work; Infinity when there is none. */
  get nextDeadlineNs(): number {
    return Math.min(this.#deadlines.nextNs, this.creditScheduler.dueNs, this.#pacing.nextNs, this.#pauses.nextNs);
  }

  /**
   * When the first timer of a queue pair runs out, as far as {@link nextDeadlineNs} comes from one: for an ACK, or for
   * a receiver that was not ready.
   */
  get nextTimerNs(): number {
    return this.#deadlines.nextNs;
  }

  /**
   * Does what is due at `now`: retransmissions, credit, pacing, ends of pauses. `timersToo: false` leaves out the
   * timers of queue pairs, while an answer may have arrived that the NIC has not received yet.
   */
  onDeadline(now: number, timersToo = true): void {
    if (timersToo) this.#deadlines.fire(now);
    this.creditScheduler.onDue(now, this.pacingCatchUpNs);
    this.#pacing.release(now);
    this.#pauses.expire(now);
  }

  /** Called before consecutive datagrams, as `Port.onTrain` has it. */
  trainArrives(bytes: Uint8Array, offset: number, packetBytes: number, packets: number): void {
    this.#receivePath.train.begin(bytes, offset, packetBytes, packets);
  }

  /** A datagram has arrived: it is checked, and executed or dropped. */
  receive(datagram: RxDatagram, now: number): void {
    this.#receivePath.receive(datagram, now);
  }

  /** The rate control of a queue pair; undefined if there is none of this number. */
  rateOf(qpn: number): RateControl | undefined {
    return this.queuePairs.get(qpn)?.rate;
  }

  visitRates(now: number, visit: (qpn: number, rateBps: number, alpha: number) => void): void {
    for (const { qpn, rate } of this.queuePairs.values()) {
      const rateBps = rate.rateBps(now);
      if (rateBps !== UNLIMITED) visit(qpn, rateBps, rate.alpha(now));
    }
  }
}
