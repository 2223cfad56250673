/**
 * Which transport to use to a host: RDMA as long as it works, TCP when it fails, and back with care, because a failover costs more than the
 * time it takes to be sure (Azure storage paper §9).
 *
 *     RDMA -- failure --> HOLD_DOWN -- time over --> PROBE -- good --> RAMP -- all moved --> RDMA
 *                             ^------- bad ------------'                |
 *                             '------- failure or too many failed moves-'
 *
 * Hold-down doubles with every failure that follows another within `cleanNs`, up to a limit, with jitter so that hosts do not return in step.
 * Sans-IO: time and randomness are passed in.
 */

import { type RandomSource, randomUnit } from '../../core/random.js';
import type { TransportName } from '../sk/channel.js';

/** Where a host’s requests go: over RDMA, over TCP after a failure, or on the way back (docs/storage-rpc.md, "Failover and return"). */
export type PathState = 'RDMA' | 'HOLD_DOWN' | 'PROBE' | 'RAMP' | 'DRAINED';

/** Times of hold-downs. */
export interface HostPathOptions {
  /** Jitter of hold-downs. */
  readonly random: RandomSource;
  /** First hold-down; default 10 s. */
  readonly holdDownNs?: number;
  /** Longest hold-down; default 10 min. */
  readonly holdDownMaxNs?: number;
  /** RDMA that has worked for so long has no past; default 10 min. */
  readonly cleanNs?: number;
}

const DEFAULTS = { holdDownNs: 10e9, holdDownMaxNs: 600e9, cleanNs: 600e9 };
const JITTER = 0.2;

/** The state of RDMA to one host. */
export class HostPath {
  readonly #random: RandomSource;
  readonly #limits: typeof DEFAULTS;
  #state: PathState = 'RDMA';
  /** The next hold-down, before jitter. */
  #holdDownNs: number;
  #holdUntilNs = 0;
  #rdmaSinceNs = Number.NEGATIVE_INFINITY;
  /** Failures of RDMA that were taken notice of. */
  failures = 0;

  constructor(options: HostPathOptions) {
    const { random, ...limits } = options;
    this.#random = random;
    this.#limits = { ...DEFAULTS, ...limits };
    this.#holdDownNs = this.#limits.holdDownNs;
  }

  /** As in the picture above, or out of service. */
  get state(): PathState {
    return this.#state;
  }

  /** What new connections try, in this order. */
  get order(): readonly TransportName[] {
    if (this.#state === 'DRAINED') return ['tcp'];
    return this.#state === 'RDMA' ? ['rdma', 'tcp'] : ['tcp', 'rdma'];
  }

  /** When `onDeadline` has something to do; Infinity: never. */
  get deadlineNs(): number {
    return this.#state === 'HOLD_DOWN' ? this.#holdUntilNs : Number.POSITIVE_INFINITY;
  }

  /** RDMA to the host failed: a connection, an attempt to make one, a probe, or a transition to it. Once held down, more failures change nothing. */
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

  /** Ends the hold-down when it is over. */
  onDeadline(now: number): void {
    if (this.#state === 'HOLD_DOWN' && now >= this.#holdUntilNs) this.#state = 'PROBE';
  }

  /** The probe has come to an end: good ones start the ramp. */
  onProbe(good: boolean, now: number): void {
    if (this.#state !== 'PROBE') return;
    if (good) this.#state = 'RAMP';
    else this.onFailure(now);
  }

  /** Every connection is on RDMA. */
  onRamped(now: number): void {
    if (this.#state !== 'RAMP') return;
    this.#state = 'RDMA';
    this.#rdmaSinceNs = now;
  }

  /** What it leads to is at another host now: what happened to the way to the last one says nothing of it. */
  onMoved(): void {
    if (this.#state === 'DRAINED') return;
    this.#state = 'RDMA';
    this.#holdDownNs = this.#limits.holdDownNs;
    this.#rdmaSinceNs = Number.NEGATIVE_INFINITY;
  }

  /** RDMA is taken out of service, for as long as it takes. */
  drain(): void {
    this.#state = 'DRAINED';
  }

  /** RDMA is back in service: it is probed at once, and nothing is held against it. */
  restore(): void {
    if (this.#state !== 'DRAINED') return;
    this.#holdDownNs = this.#limits.holdDownNs;
    this.#state = 'PROBE';
  }
}
