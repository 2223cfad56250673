/**
 * All sessions to one storage host, and the path they share. Carries out what the path decides: fails over at once, probes when a hold-down
 * ends, moves sessions back gradually, and takes RDMA out of service so that a NIC can be serviced under running I/O.
 */

import type { Clock } from '../../core/clock.js';
import type { RandomSource } from '../../core/random.js';
import { NS_PER_S } from '../../core/units.js';
import type { TransportName } from '../sk/channel.js';
import { ClientSession } from '../sk/client-session.js';
import type { ClientSessionOptions } from '../sk/client-session-options.js';
import { DiskClaim, type DiskClaimOptions, DiskInUse } from '../sk/disk-claim.js';
import { DurabilityWatch } from '../sk/durability-watch.js';
import { ExpectedDisk } from '../sk/expected-disk.js';
import { HostOutage, type OutageState } from './host-outage.js';
import { HostPath, type HostPathOptions, type PathState } from './host-path.js';
import { probe } from './probe.js';
import { type Dialers, SessionKeeper } from './session-keeper.js';
import { Transition, type TransitionOptions } from './transition.js';

/** How to reach a host, and the terms of path, transitions and sessions; each has its defaults. */
export interface HostConnectionsOptions {
  /** A way to make a connection by each transport the host may have. */
  readonly dial: Dialers;
  /** For hold-downs, transitions and time limits. */
  readonly clock: Clock;
  /** Jitter and session ids. */
  readonly random: RandomSource;
  /** Hold-down times; see {@link HostPathOptions}. */
  readonly path?: Omit<HostPathOptions, 'random'>;
  /** How fast sessions move back; see {@link TransitionOptions}. */
  readonly transition?: Omit<TransitionOptions, 'connections'>;
  /** Terms of each session; see {@link ClientSessionOptions}. */
  readonly session?: Omit<ClientSessionOptions, 'clock' | 'random' | 'durability' | 'expected' | 'claim'>;
  /** Which disk, and to do what; default: the disk of the session's index, shared. */
  readonly claim?: Omit<DiskClaimOptions, 'isPatient'>;
  /** Wait for as long as another client writes to the disk. Default: only for a client that is gone, until its lease ends. */
  readonly standby?: boolean;
  /** UUID of the disk that the host must have; default: the disk that the first session finds. */
  readonly uuid?: string;
  /** Requests fail when the host could not be reached for so long, until it can be; default: they wait for ever. */
  readonly giveUpNs?: number;
  /** Takes sentences for the operator: the host cannot be reached, and is back. */
  readonly onNotice?: (notice: string) => void;
}

/** A probe must not be slower than so many times the 99th percentile before the failure, or over TCP now, or than what is nobody's fault. */
/** A disk that is in use is asked for again after so long. */
const STANDBY_NS = 1e9;
const PROBE_SLACK = 2;
const PROBE_FLOOR_NS = 5e6;

/** A transition to RDMA under way, and the moves it has begun. */
interface Ramp {
  readonly plan: Transition;
  readonly moves: Map<SessionKeeper, Promise<void>>;
}

/** The sessions to one host. */
export class HostConnections {
  /** Decides which transport to use. */
  readonly path: HostPath;
  /** What the path has been through. */
  readonly counters = { failovers: 0, probes: 0, failedProbes: 0, moves: 0, failedMoves: 0, frozenTransitions: 0 };
  readonly #options: HostConnectionsOptions;
  readonly #keepers: SessionKeeper[] = [];
  readonly #durability = new DurabilityWatch();
  readonly #expected: ExpectedDisk;
  readonly #claim: DiskClaim;
  readonly #outage: HostOutage;
  /** The 99th percentile of requests over RDMA before its last failure; Infinity: not known. */
  #usualP99Ns = Number.POSITIVE_INFINITY;
  #transition: Ramp | undefined;
  #cancelWake: (() => void) | undefined;
  /** Probes under way: at most one, and what is left of one before a drain. */
  #probing: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(options: HostConnectionsOptions) {
    this.#options = options;
    this.#expected = new ExpectedDisk(options.uuid);
    this.#claim = new DiskClaim(options.random, { ...options.claim, isPatient: options.standby === true });
    const { clock, giveUpNs, onNotice = () => {} } = options;
    this.#outage = new HostOutage({ clock, onNotice, ...(giveUpNs !== undefined && { giveUpNs }) });
    this.path = new HostPath({ random: options.random, ...options.path });
    // A host that has no RDMA is one whose RDMA is out of service.
    if (options.dial.rdma === undefined) this.path.drain();
  }

  /** What the path is doing. */
  get state(): PathState {
    return this.path.state;
  }

  /** Why the host cannot be reached now, and since when; undefined: every session has a connection, or is getting one. */
  get outage(): OutageState | undefined {
    return this.#outage.state;
  }

  /** How often the host could not be reached. */
  get outages(): number {
    return this.#outage.count;
  }

  /** What sessions know of the durability of the disk; they share it. */
  get durability(): DurabilityWatch {
    return this.#durability;
  }

  /** Sessions by the transport they use now. */
  count(transport: TransportName): number {
    return this.#keepers.filter((keeper) => keeper.transport === transport).length;
  }

  /** Opens a session and connects it. */
  async open(): Promise<SessionKeeper> {
    const { clock, dial, giveUpNs } = this.#options;
    const keeper = new SessionKeeper({
      session: new ClientSession({ ...this.#sessionTerms, durability: this.#durability }),
      dial,
      clock,
      order: () => this.path.order,
      onFailure: (transport) => this.#onFailure(keeper, transport),
      onReach: (error) => this.#outage.onReach(keeper, error),
      ...(giveUpNs !== undefined && { giveUpNs }),
    });
    await this.#connect(keeper);
    this.#keepers.push(keeper);
    return keeper;
  }

  /** Makes the first connection, as soon as the disk is free. Rejects with a {@link DiskInUse} where that is not waited for. */
  async #connect(keeper: SessionKeeper): Promise<void> {
    const { clock, standby = false, onNotice = () => {} } = this.#options;
    for (let isWaiting = false; ; ) {
      try {
        await keeper.connect();
        return;
      } catch (error) {
        if (this.#closed) throw error;
        if (error instanceof DiskInUse) {
          const { holder, remainingNs } = error;
          if (holder.isConnected && !standby) throw error;
          const until = standby
            ? 'standing by until it is free'
            : `its writer is gone, and its lease ends in ${Math.ceil(remainingNs / NS_PER_S)} s`;
          if (!isWaiting) onNotice(`${error.what}: ${until}`);
          isWaiting = true;
        } else if (!standby || !isWaiting) throw error; // Who stands by also waits for the server.
        await new Promise<void>((resolve) => clock.wakeAt(clock.nowNs() + STANDBY_NS, resolve));
      }
    }
  }

  /** Moves every session to a transport now, without holding anything against the other. */
  async moveAll(to: TransportName): Promise<void> {
    await Promise.all(this.#keepers.map((keeper) => this.#move(keeper, to)));
  }

  /** Breaks every connection that runs over RDMA, as if it had failed. */
  failRdma(why: string): void {
    for (const { session } of this.#keepers) if (session.transport === 'rdma') session.breakConnection(why);
  }

  /** Takes RDMA out of service. When it resolves no session uses it, and none will until `restore`. */
  async drain(): Promise<void> {
    this.path.drain();
    this.#transition = undefined;
    await this.moveAll('tcp');
    await this.#probing;
  }

  /** RDMA is back: it is probed, and taken into use gradually. */
  restore(): void {
    if (this.#options.dial.rdma === undefined) return;
    this.path.restore();
    this.#next();
  }

  /** The end is near: requests that have no connection within 2 s fail. */
  hurry(): void {
    for (const keeper of this.#keepers) keeper.hurry();
  }

  /** When it resolves nothing is connected, nor about to be: the device may be closed. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelWake?.();
    await Promise.all(this.#keepers.splice(0).map((keeper) => keeper.close()));
    await this.#probing;
  }

  get #sessionTerms() {
    const { clock, random, session } = this.#options;
    return { clock, random, expected: this.#expected, claim: this.#claim, ...session };
  }

  #onFailure(keeper: SessionKeeper, transport: TransportName): void {
    if (transport !== 'rdma') return;
    const { clock } = this.#options;
    const { state } = this.path;
    if (state === 'RAMP' && this.#transition !== undefined) {
      // One bad connection does not end the ramp; too many do. Sessions are entered when their move begins.
      if (this.#transition.moves.has(keeper)) this.#transition.plan.onFailed(clock.nowNs());
    } else {
      this.path.onFailure(clock.nowNs());
      if (state === 'RDMA') {
        this.counters.failovers++;
        this.#usualP99Ns = keeper.session.latency.p99Ns ?? Number.POSITIVE_INFINITY;
      }
    }
    this.#next();
  }

  /** Does what the state asks for, or sets the timer for it. */
  #next(): void {
    if (this.#closed) return;
    const { clock } = this.#options;
    const { state, deadlineNs } = this.path;
    this.#cancelWake?.();
    this.#cancelWake = undefined;
    if (state === 'PROBE') this.#probing = Promise.all([this.#probing, this.#probe()]);
    else if (state === 'RAMP') this.#ramp();
    else if (deadlineNs !== Number.POSITIVE_INFINITY) {
      this.#wakeAt(deadlineNs, () => this.path.onDeadline(clock.nowNs()));
    }
  }

  #wakeAt(timeNs: number, action: () => void): void {
    this.#cancelWake = this.#options.clock.wakeAt(timeNs, () => {
      action();
      this.#next();
    });
  }

  /** What the host's users get at present: a busy machine makes everything slow. */
  get #presentP99Ns(): number {
    return Math.max(0, ...this.#keepers.map(({ session }) => session.latency.p99Ns ?? 0));
  }

  async #probe(): Promise<void> {
    const { dial, clock } = this.#options;
    this.counters.probes++;
    let good = false;
    try {
      const slowestNs = await probe(await dial.rdma!(), this.#sessionTerms);
      good = slowestNs <= Math.max(PROBE_SLACK * this.#usualP99Ns, PROBE_SLACK * this.#presentP99Ns, PROBE_FLOOR_NS);
    } catch {} // A path that cannot be probed is not good.
    if (!good) this.counters.failedProbes++;
    this.path.onProbe(good, clock.nowNs());
    this.#next();
  }

  #ramp(): void {
    const { clock, transition } = this.#options;
    const now = clock.nowNs();
    this.#transition ??= {
      plan: new Transition({ connections: this.count('tcp'), ...transition }, now),
      moves: new Map(),
    };
    const { plan, moves } = this.#transition;
    const waiting = this.#keepers.filter((keeper) => keeper.transport === 'tcp' && !moves.has(keeper));
    for (const keeper of waiting.slice(0, plan.due(now))) {
      moves.set(
        keeper,
        this.#move(keeper, 'rdma').then((succeeded) => {
          if (succeeded) plan.onMoved(clock.nowNs());
        }),
      );
    }
    if (plan.state === 'frozen') void this.#revert([...moves.keys()]);
    else if (plan.state === 'moving') this.#wakeAt(plan.deadlineNs, () => {});
    else void this.#finishRamp(this.#transition);
  }

  /** Every move has begun: the ramp is over when all have ended, well or not. Sessions that could not be moved stay where they are. */
  async #finishRamp(ramp: Ramp): Promise<void> {
    await Promise.all(ramp.moves.values());
    if (this.#transition !== ramp) return;
    if (ramp.plan.state === 'frozen') {
      await this.#revert([...ramp.moves.keys()]);
      return;
    }
    this.#transition = undefined;
    this.path.onRamped(this.#options.clock.nowNs());
  }

  async #revert(moved: readonly SessionKeeper[]): Promise<void> {
    this.counters.frozenTransitions++;
    this.#transition = undefined;
    this.path.onFailure(this.#options.clock.nowNs());
    this.#next();
    await Promise.all(moved.map((keeper) => this.#move(keeper, 'tcp')));
  }

  async #move(keeper: SessionKeeper, to: TransportName): Promise<boolean> {
    const moved = await keeper.moveTo(to);
    if (moved) this.counters.moves++;
    else this.counters.failedMoves++;
    return moved;
  }
}
