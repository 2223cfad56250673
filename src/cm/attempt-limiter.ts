/**
 * Bounds the attempts of one device to connect to one listener at a time. If a program makes a thousand connections at
 * once, the first is soon ready, and no handshake exceeds its time limit because of the others.
 */

import { Permits } from '../core/permits.js';
import type { CancellationState } from '../core/wait.js';

const ATTEMPTS_MAX = 64;

interface Target {
  readonly permits: Permits;
  /** Attempts that run or wait. */
  users: number;
}

export class AttemptLimiter {
  readonly #targets = new Map<string, Target>();

  /** Runs the attempt when it is its turn; rejects with the caller's error if the caller no longer waits by then. */
  async run<T>(name: string, cancellation: CancellationState, attempt: () => Promise<T>): Promise<T> {
    const target = this.#targets.get(name) ?? { permits: new Permits(ATTEMPTS_MAX), users: 0 };
    this.#targets.set(name, target);
    target.users++;
    await target.permits.take(1);
    try {
      if (cancellation.error !== undefined) throw cancellation.error;
      return await attempt();
    } finally {
      target.permits.give(1);
      if (--target.users === 0) this.#targets.delete(name);
    }
  }
}
