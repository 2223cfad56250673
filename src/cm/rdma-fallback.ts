/**
 * The policy by which RDMA to one host falls back to TCP and returns. RDMA is used while it works. After a failure it
 * is held down, because a failover costs more than waiting for certainty (Azure storage paper §9).
 *
 *     RDMA -- failure --> HOLD_DOWN -- time over --> PROBE -- good --> RAMP -- all moved --> RDMA
 *                             ^------- bad ------------'                |
 *                             '------- failure or too many failed moves-'
 *
 * The hold-down doubles with every failure that follows another within `cleanNs`, up to a limit. Its jitter keeps hosts
 * from returning at the same time. Time and randomness are passed in.
 */

import { withDefaults } from '../core/defaults.js';
import { type RandomSource, randomUnit } from '../core/random.js';

/** Transports to a host. */
export type HostTransport = 'rdma' | 'tcp';

/** The state of RDMA to a host (docs/storage-rpc.md, "Failover and return"). */
export type PathState = 'RDMA' | 'HOLD_DOWN' | 'PROBE' | 'RAMP' | 'DRAINED';

/** Times of hold-downs. */
export interface RdmaFallbackOptions {
  /** Jitter of hold-downs. */
  readonly random: RandomSource;
  /** First hold-down; default 10 s. */
  readonly holdDownNs?: number | undefined;
  /** Longest hold-down; default 10 min. */
  readonly holdDownMaxNs?: number | undefined;
  /** After RDMA has worked this long, a failure counts as the first; default 10 min. */
  readonly cleanNs?: number | undefined;
}

const DEFAULTS = { holdDownNs: 10e9, holdDownMaxNs: 600e9, cleanNs: 600e9 };
const JITTER = 0.2;

export class RdmaFallback {
  readonly #random: RandomSource;
  readonly #limits: typeof DEFAULTS;
  #state: PathState = 'RDMA';
  /** The next hold-down, before jitter. */
  #holdDownNs: number;
  #holdUntilNs = Number.NEGATIVE_INFINITY;
  #rdmaSinceNs = Number.NEGATIVE_INFINITY;
  /** Failures that began a hold-down. */
  failures = 0;

  constructor(options: RdmaFallbackOptions) {
    const { random, ...limits } = options;
    this.#random = random;
    this.#limits = withDefaults(DEFAULTS, limits);
    this.#holdDownNs = this.#limits.holdDownNs;
  }

  get state(): PathState {
    return this.#state;
  }

  /** Transports for new connections, in the order in which they are tried. */
  get order(): readonly HostTransport[] {
    if (this.#state === 'DRAINED') return ['tcp'];
    return this.#state === 'RDMA' ? ['rdma', 'tcp'] : ['tcp', 'rdma'];
  }

  /** When `onDeadline` is due; Infinity: never. */
  get deadlineNs(): number {
    return this.#state === 'HOLD_DOWN' ? this.#holdUntilNs : Number.POSITIVE_INFINITY;
  }

  /** The last hold-down ended at least `cleanNs` ago, and RDMA has not failed since: this state need not be kept. */
  isClean(now: number): boolean {
    return now - Math.max(this.#rdmaSinceNs, this.#holdUntilNs) >= this.#limits.cleanNs;
  }

  /**
   * RDMA to the host failed: a connection, an attempt to make one, a probe, or a move to it. Failures during a
   * hold-down change nothing.
   */
  onFailure(now: number): void {
    if (this.#state === 'HOLD_DOWN' || this.#state === 'DRAINED') return;
    this.failures++;
    const { holdDownNs, holdDownMaxNs, cleanNs } = this.#limits;
    if (this.#state === 'RDMA' && now - this.#rdmaSinceNs >= cleanNs) this.#holdDownNs = holdDownNs;
    this.#state = 'HOLD_DOWN';
    const jitter = 1 + JITTER * (2 * randomUnit(this.#random) - 1);
    this.#holdUntilNs = now + this.#holdDownNs * jitter;
    this.#holdDownNs = Math.min(2 * this.#holdDownNs, holdDownMaxNs);
  }

  onDeadline(now: number): void {
    if (this.#state === 'HOLD_DOWN' && now >= this.#holdUntilNs) this.#state = 'PROBE';
  }

  /** The probe has ended. After a good one connections move back. */
  onProbe(good: boolean, now: number): void {
    if (this.#state !== 'PROBE') return;
    if (good) this.#state = 'RAMP';
    else this.onFailure(now);
  }

  onFailbackDone(now: number): void {
    if (this.#state !== 'RAMP') return;
    this.#state = 'RDMA';
    this.#rdmaSinceNs = now;
  }

  /** Another host has taken over: failures of the previous one do not count. */
  onMoved(): void {
    if (this.#state === 'DRAINED') return;
    this.#state = 'RDMA';
    this.#holdDownNs = this.#limits.holdDownNs;
    this.#rdmaSinceNs = Number.NEGATIVE_INFINITY;
  }

  /** Takes RDMA out of service until `restore`. */
  drain(): void {
    this.#state = 'DRAINED';
  }

  /** RDMA is back in service: it is probed at once, and earlier failures do not count. */
  restore(): void {
    if (this.#state !== 'DRAINED') return;
    this.#holdDownNs = this.#limits.holdDownNs;
    this.#state = 'PROBE';
  }
}
