/**
 * Whether a host can be reached at all, and what to tell of it: one event when an outage begins, when its reason becomes another one that
 * somebody has to act on, when requests begin to fail (for good, if another client has taken over the disk), and when it ends. Sans-IO.
 */

import type { Clock } from '../../core/clock.js';
import { RoceError } from '../../core/errors.js';
import type { HostEvent } from './host-event.js';

/** An outage that lasts. */
export interface OutageState {
  /** Since when, nanoseconds of the clock. */
  readonly sinceNs: number;
  /** Why the last attempt to connect failed. */
  readonly reason: string;
  /** The host answers, with another disk. */
  readonly isWrongDisk: boolean;
}

interface OutageOptions {
  readonly clock: Clock;
  readonly onEvent: (event: HostEvent) => void;
  /** Requests fail after so long; default: never. */
  readonly giveUpNs?: number;
}

/** The outages of one host. */
export class HostOutage {
  /** Outages so far. */
  count = 0;
  readonly #options: OutageOptions;
  /** Who has no connection. */
  readonly #without = new Set<object>();
  #state: OutageState | undefined;
  #gaveUp = false;
  #isFenced = false;

  constructor(options: OutageOptions) {
    this.#options = options;
  }

  /** The outage at present; undefined: there is none. */
  get state(): OutageState | undefined {
    return this.#state;
  }

  /** A session has a connection again, or none by any transport, because of `error`. */
  onReach(session: object, error: Error | undefined): void {
    const { clock, onEvent, giveUpNs } = this.#options;
    const now = clock.nowNs();
    if (error === undefined) {
      this.#without.delete(session);
      if (this.#state === undefined || this.#without.size > 0) return;
      const outageNs = now - this.#state.sinceNs;
      this.#state = undefined;
      this.#gaveUp = false;
      onEvent({ type: 'back', outageNs });
      return;
    }
    this.#without.add(session);
    const isWrongDisk = error instanceof RoceError && error.code === 'ERR_ROCE_MISMATCH';
    const isFenced = error instanceof RoceError && error.code === 'ERR_ROCE_FENCED';
    const isNews = this.#state === undefined || this.#state.isWrongDisk !== isWrongDisk;
    if (this.#state === undefined) this.count++;
    const sinceNs = this.#state?.sinceNs ?? now;
    const reason = error.message;
    this.#state = { sinceNs, reason, isWrongDisk };
    if (isFenced) {
      if (!this.#isFenced) onEvent({ type: 'fenced', reason });
      this.#isFenced = true;
    } else if (giveUpNs !== undefined && now - sinceNs >= giveUpNs) {
      if (!this.#gaveUp) onEvent({ type: 'give-up', outageNs: now - sinceNs });
      this.#gaveUp = true;
    } else if (isNews) onEvent({ type: 'outage', reason, isWrongDisk, giveUpNs });
  }
}
