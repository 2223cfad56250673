/**
 * All sessions to one host and their shared path. Executes the path's decisions: fails over at once, probes when a
 * hold-down ends, moves sessions back gradually, and takes RDMA out of service under running I/O.
 */

import { type HostTransport, type PathState, RdmaFallback, type RdmaFallbackOptions } from '../../cm/rdma-fallback.js';
import type { Clock } from '../../core/clock.js';
import type { RandomSource } from '../../core/random.js';
import { type FailbackOptions, GradualFailback } from './gradual-failback.js';
import { type HostEvent, noticeOf } from './host-event.js';
import { HostOutage, type OutageState } from './host-outage.js';
import { type Dialers, type KeptChannel, type KeptSession, Reconnector } from './reconnector.js';

export interface HostSessionsOptions<C extends KeptChannel> {
  readonly dial: Dialers<C>;
  readonly locate?: () => Promise<boolean>;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Hold-down times; see {@link RdmaFallbackOptions}. */
  readonly path?: Omit<RdmaFallbackOptions, 'random'>;
  /** How fast sessions move back; see {@link FailbackOptions}. */
  readonly transition?: Omit<FailbackOptions, 'connections'>;
  readonly giveUpNs?: number;
  readonly onNotice?: (notice: string) => void;
  readonly onEvent?: (event: HostEvent) => void;
  readonly onReach?: (error: Error | undefined) => void;
}

/**
 * A probe must not be slower than this multiple of the 99th percentile before the failure or over TCP now, or than the
 * floor.
 */
const PROBE_SLACK = 2;
const PROBE_FLOOR_NS = 5e6;

/** A gradual failback to RDMA in progress, and the moves it has begun. */
interface FailbackInProgress<K> {
  readonly plan: GradualFailback;
  readonly moves: Map<K, Promise<void>>;
}

export abstract class HostSessions<C extends KeptChannel, S extends KeptSession<C>> {
  readonly path: RdmaFallback;
  readonly counters = { failovers: 0, probes: 0, failedProbes: 0, moves: 0, failedMoves: 0, abortedTransitions: 0 };
  readonly #options: HostSessionsOptions<C>;
  readonly #reconnectors: Array<Reconnector<C, S>> = [];
  readonly #outage: HostOutage;
  #usualP99Ns = Number.POSITIVE_INFINITY;
  #failback: FailbackInProgress<Reconnector<C, S>> | undefined;
  #cancelWake: (() => void) | undefined;
  #probing: Promise<unknown> = Promise.resolve();
  #closed = false;

  protected constructor(options: HostSessionsOptions<C>) {
    this.#options = options;
    const { clock, giveUpNs } = options;
    const onEvent = (event: HostEvent) => this.#tell(event);
    this.#outage = new HostOutage({ clock, onEvent, ...(giveUpNs !== undefined && { giveUpNs }) });
    this.path = new RdmaFallback({ random: options.random, ...options.path });
    // A host that has no RDMA is one whose RDMA is out of service.
    if (options.dial.rdma === undefined) this.path.drain();
  }

  protected abstract newSession(): S;

  protected abstract probe(channel: C): Promise<number>;

  protected connect(reconnector: Reconnector<C, S>): Promise<void> {
    return reconnector.connect();
  }

  protected get isClosed(): boolean {
    return this.#closed;
  }

  get state(): PathState {
    return this.path.state;
  }

  get outage(): OutageState | undefined {
    return this.#outage.state;
  }

  get outages(): number {
    return this.#outage.count;
  }

  count(transport: HostTransport): number {
    return this.#reconnectors.filter((reconnector) => reconnector.transport === transport).length;
  }

  async open(): Promise<Reconnector<C, S>> {
    const { clock, dial, giveUpNs, locate, onReach } = this.#options;
    const reconnector: Reconnector<C, S> = new Reconnector({
      session: this.newSession(),
      dial,
      clock,
      order: () => this.path.order,
      ...(locate !== undefined && {
        locate: async () => {
          if (await locate()) this.#onMoved();
        },
      }),
      onFailure: (transport, error) => this.#onFailure(reconnector, transport, error),
      onReach: (error) => {
        this.#outage.onReach(reconnector, error);
        onReach?.(error);
      },
      ...(giveUpNs !== undefined && { giveUpNs }),
    });
    await this.connect(reconnector);
    this.#reconnectors.push(reconnector);
    return reconnector;
  }

  forget(session: S): void {
    const at = this.#reconnectors.findIndex((reconnector) => reconnector.session === session);
    for (const reconnector of at < 0 ? [] : this.#reconnectors.splice(at, 1))
      this.#outage.onReach(reconnector, undefined);
  }

  async moveAll(to: HostTransport): Promise<void> {
    await Promise.all(this.#reconnectors.map((reconnector) => this.#move(reconnector, to)));
  }

  failRdma(why: string): void {
    for (const { session } of this.#reconnectors) if (session.transport === 'rdma') session.breakConnection(why);
  }

  /** When it resolves no session uses it, and none will until `restore`. */
  async drain(): Promise<void> {
    this.path.drain();
    this.#failback = undefined;
    await this.moveAll('tcp');
    await this.#probing;
  }

  restore(): void {
    if (this.#options.dial.rdma === undefined) return;
    this.path.restore();
    this.#next();
  }

  /** Requests that have no connection within 2 s fail. */
  shortenDeadline(): void {
    for (const reconnector of this.#reconnectors) reconnector.shortenDeadline();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelWake?.();
    await Promise.all(this.#reconnectors.splice(0).map((reconnector) => reconnector.close()));
    await this.#probing;
  }

  #tell(event: HostEvent): void {
    const { onNotice, onEvent } = this.#options;
    const notice = noticeOf(event);
    if (notice !== undefined) onNotice?.(notice);
    onEvent?.(event);
  }

  /** The host has moved: no session may continue with the previous one while another is served by this one. */
  #onMoved(): void {
    this.path.onMoved();
    this.#failback = undefined;
    this.#next();
    for (const { session } of this.#reconnectors) if (session.transport !== undefined) session.leave?.();
  }

  #onFailure(reconnector: Reconnector<C, S>, transport: HostTransport, error: Error): void {
    if (transport !== 'rdma') return;
    const { clock } = this.#options;
    const { state } = this.path;
    if (state === 'RAMP' && this.#failback !== undefined) {
      // One bad connection does not end the failback; too many do. Sessions are entered when their move begins.
      if (this.#failback.moves.has(reconnector)) this.#failback.plan.onFailed(clock.nowNs());
    } else {
      this.path.onFailure(clock.nowNs());
      if (state === 'RDMA') {
        this.counters.failovers++;
        this.#usualP99Ns = reconnector.session.latency.p99Ns ?? Number.POSITIVE_INFINITY;
        this.#tell({ type: 'failover', reason: error.message });
      }
    }
    this.#next();
  }

  #next(): void {
    if (this.#closed) return;
    const { clock } = this.#options;
    const { state, deadlineNs } = this.path;
    this.#cancelWake?.();
    this.#cancelWake = undefined;
    if (state === 'PROBE') this.#probing = Promise.all([this.#probing, this.#probe()]);
    else if (state === 'RAMP') this.#failBack();
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

  /** A busy machine makes everything slow. */
  get #presentP99Ns(): number {
    return Math.max(0, ...this.#reconnectors.map(({ session }) => session.latency.p99Ns ?? 0));
  }

  async #probe(): Promise<void> {
    const { dial, clock } = this.#options;
    this.counters.probes++;
    let good = false;
    try {
      const slowestNs = await this.probe(await dial.rdma!());
      good = slowestNs <= Math.max(PROBE_SLACK * this.#usualP99Ns, PROBE_SLACK * this.#presentP99Ns, PROBE_FLOOR_NS);
    } catch {}
    if (!good) this.counters.failedProbes++;
    this.path.onProbe(good, clock.nowNs());
    this.#next();
  }

  #failBack(): void {
    const { clock, transition } = this.#options;
    const now = clock.nowNs();
    this.#failback ??= {
      plan: new GradualFailback({ connections: this.count('tcp'), ...transition }, now),
      moves: new Map(),
    };
    const { plan, moves } = this.#failback;
    const waiting = this.#reconnectors.filter(
      (reconnector) => reconnector.transport === 'tcp' && !moves.has(reconnector),
    );
    for (const reconnector of waiting.slice(0, plan.due(now))) {
      moves.set(
        reconnector,
        this.#move(reconnector, 'rdma').then((succeeded) => {
          if (succeeded) plan.onMoved(clock.nowNs());
        }),
      );
    }
    if (plan.state === 'aborted') void this.#revert([...moves.keys()]);
    else if (plan.state === 'moving') this.#wakeAt(plan.deadlineNs, () => {});
    else void this.#finishFailback(this.#failback);
  }

  /**
   * Every move has begun: the failback is over when all have ended, well or not. Sessions that could not be moved stay
   * where they are.
   */
  async #finishFailback(failback: FailbackInProgress<Reconnector<C, S>>): Promise<void> {
    await Promise.all(failback.moves.values());
    if (this.#failback !== failback) return;
    if (failback.plan.state === 'aborted') {
      await this.#revert([...failback.moves.keys()]);
      return;
    }
    this.#failback = undefined;
    if (this.path.state !== 'RAMP') return;
    this.path.onFailbackDone(this.#options.clock.nowNs());
    this.#tell({ type: 'return' });
  }

  async #revert(moved: ReadonlyArray<Reconnector<C, S>>): Promise<void> {
    this.counters.abortedTransitions++;
    this.#failback = undefined;
    this.path.onFailure(this.#options.clock.nowNs());
    this.#next();
    await Promise.all(moved.map((reconnector) => this.#move(reconnector, 'tcp')));
  }

  async #move(reconnector: Reconnector<C, S>, to: HostTransport): Promise<boolean> {
    const moved = await reconnector.moveTo(to);
    if (moved) this.counters.moves++;
    else this.counters.failedMoves++;
    return moved;
  }
}
