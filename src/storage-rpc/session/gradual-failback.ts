/**
 * Moves many connections back to RDMA a few at a time (Azure storage paper §4.1: "periodically close a small fraction
 * of connections and reestablish them"), and stops when too many moves fail.
 *
 * Without I/O: returns how many moves to begin now, and learns the outcome of each.
 */

export interface FailbackOptions {
  readonly connections: number;
  readonly fraction?: number;
  readonly intervalNs?: number;
}

const DEFAULTS = { fraction: 0.05, intervalNs: 1e9 };
/** The failback is aborted when more than this share of the moves within `WINDOW_NS` has failed. */
const FAILURES_MAX = 0.05;
const WINDOW_NS = 10e9;

/** The plan of one failback. */
export class GradualFailback {
  readonly #options: Required<FailbackOptions>;
  readonly #moves: number[] = [];
  readonly #failures: number[] = [];
  #begun = 0;
  #nextNs: number;
  #aborted = false;

  constructor(options: FailbackOptions, startNs: number) {
    this.#options = { ...DEFAULTS, ...options };
    this.#nextNs = startNs;
  }

  /** `aborted`: too many moves failed; what has moved is to be moved back. */
  get state(): 'moving' | 'done' | 'aborted' {
    if (this.#aborted) return 'aborted';
    return this.#begun >= this.#options.connections ? 'done' : 'moving';
  }

  get deadlineNs(): number {
    return this.state === 'moving' ? this.#nextNs : Number.POSITIVE_INFINITY;
  }

  due(now: number): number {
    if (now < this.deadlineNs) return 0;
    const { connections, fraction, intervalNs } = this.#options;
    const count = Math.min(Math.ceil(connections * fraction), connections - this.#begun);
    this.#begun += count;
    this.#nextNs = now + intervalNs;
    return count;
  }

  onMoved(now: number): void {
    this.#moves.push(now);
  }

  onFailed(now: number): void {
    this.#failures.push(now);
    const recent = (times: readonly number[]) => times.filter((time) => now - time <= WINDOW_NS).length;
    const failed = recent(this.#failures);
    if (failed > FAILURES_MAX * (recent(this.#moves) + failed)) this.#aborted = true;
  }
}
