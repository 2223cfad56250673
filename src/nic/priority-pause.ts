/**
 * Priority-based flow control at the NIC (IEEE 802.1Qbb): which priorities the link partner has paused and until when,
 * and the queue pairs that were scheduled during the pause. A pause ends when it is lifted or when its time is over;
 * until then nothing of that priority is sent.
 */

import { PRIORITIES } from '../packet/pfc.js';
import { RunQueue } from './run-queue.js';

const OPEN = Number.NEGATIVE_INFINITY;

export class PriorityPause<T> {
  readonly #untilNs = new Float64Array(PRIORITIES).fill(OPEN);
  readonly #held = Array.from({ length: PRIORITIES }, () => new RunQueue<T>());
  #paused = 0;
  readonly #release: (item: T) => void;

  constructor(release: (item: T) => void) {
    this.#release = release;
  }

  get isAny(): boolean {
    return this.#paused > 0;
  }

  isPaused(priority: number): boolean {
    return this.#untilNs[priority] !== OPEN;
  }

  /** A pause frame names the priority: its newest word counts. */
  pause(priority: number, durationNs: number, now: number): void {
    if (durationNs <= 0) {
      this.#lift(priority);
      return;
    }
    if (!this.isPaused(priority)) this.#paused++;
    this.#untilNs[priority] = now + durationNs;
  }

  /** Keeps `item`, whose priority is paused, until the pause ends. */
  hold(priority: number, item: T): void {
    this.#held[priority].push(item);
  }

  /** When the first pause expires; Infinity when there is none. */
  get nextNs(): number {
    if (this.#paused === 0) return Number.POSITIVE_INFINITY;
    let next = Number.POSITIVE_INFINITY;
    for (const untilNs of this.#untilNs) if (untilNs !== OPEN && untilNs < next) next = untilNs;
    return next;
  }

  expire(now: number): void {
    if (this.#paused === 0) return;
    for (let priority = 0; priority < PRIORITIES; priority++) {
      if (this.isPaused(priority) && this.#untilNs[priority] <= now) this.#lift(priority);
    }
  }

  #lift(priority: number): void {
    if (!this.isPaused(priority)) return;
    this.#untilNs[priority] = OPEN;
    this.#paused--;
    const held = this.#held[priority];
    for (let item = held.shift(); item !== undefined; item = held.shift()) this.#release(item);
  }
}
