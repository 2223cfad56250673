/**
 * Bounds the time that unauthenticated hosts can take from the event loop: expensive steps run one after another, with
 * pauses of twice their time, and addresses take turns.
 */

import { type Clock, RoceError } from 'rocev2/internal/core';

/** Steps of one address that may wait: as many as four hosts with all their queues have. */
const WAITING_MAX = 256;
const PAUSE_PER_WORK = 2;

export class PacedWork {
  readonly #clock: Clock;
  /** By network, the one whose turn is next first. */
  readonly #waiting = new Map<string, Array<() => void>>();
  #isPausing = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves with the result of `work`, or rejects with its error. Rejects with ERR_ROCE_LIMIT if too many wait. */
  run<T>(network: string, work: () => T): Promise<T> {
    const waiting = this.#waiting.get(network) ?? [];
    if (waiting.length >= WAITING_MAX)
      return Promise.reject(new RoceError('ERR_ROCE_LIMIT', 'too many authentications of one address wait'));
    this.#waiting.set(network, waiting);
    return new Promise((resolve, reject) => {
      waiting.push(() => {
        try {
          resolve(work());
        } catch (error) {
          reject(error);
        }
      });
      this.#next();
    });
  }

  #next(): void {
    const [first] = this.#waiting;
    if (this.#isPausing || first === undefined) return;
    const [network, waiting] = first;
    const step = waiting.shift()!;
    this.#waiting.delete(network);
    if (waiting.length > 0) this.#waiting.set(network, waiting);
    const beganNs = this.#clock.nowNs();
    step();
    const nowNs = this.#clock.nowNs();
    this.#isPausing = true;
    this.#clock.wakeAt(nowNs + PAUSE_PER_WORK * (nowNs - beganNs), () => {
      this.#isPausing = false;
      this.#next();
    });
  }
}
