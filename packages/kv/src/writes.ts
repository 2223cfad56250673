import { type Clock, RoceError } from 'rocev2/internal/core';
import type { Written } from './store.js';

export type Executed = Exclude<Written, { readonly outcome: 'wait' }>;

interface Waiting {
  readonly write: () => Written;
  readonly resolve: (executed: Executed) => void;
  readonly reject: (error: unknown) => void;
}

export class Writes {
  readonly #clock: Clock;
  readonly #waiting: Waiting[] = [];
  #stopTimer: (() => void) | undefined;
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  run(write: () => Written): Promise<Executed> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) {
        reject(closed());
        return;
      }
      this.#waiting.push({ write, resolve, reject });
      if (this.#waiting.length === 1) this.#go();
    });
  }

  #go(): void {
    this.#stopTimer = undefined;
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      try {
        const written = next.write();
        if (written.outcome === 'wait') {
          this.#stopTimer = this.#clock.wakeAt(written.retryNs, () => this.#go());
          return;
        }
        next.resolve(written);
      } catch (error) {
        next.reject(error);
      }
      this.#waiting.shift();
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#stopTimer?.();
    for (const { reject } of this.#waiting.splice(0)) reject(closed());
  }
}

function closed(): RoceError {
  return new RoceError('ERR_ROCE_CLOSED', 'the store is closed');
}
