/**
 * Whether a host can be reached at all, and what to tell the operator of it: one line when an outage begins, when its reason becomes another
 * one that he has to act on, when requests begin to fail (for good, if another client has taken over the disk), and when it ends. Sans-IO.
 */

import type { Clock } from '../../core/clock.js';
import { RoceError } from '../../core/errors.js';
import { formatNs, NS_PER_S } from '../../core/units.js';

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
  readonly onNotice: (notice: string) => void;
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
    const { clock, onNotice, giveUpNs = Number.POSITIVE_INFINITY } = this.#options;
    const now = clock.nowNs();
    if (error === undefined) {
      this.#without.delete(session);
      if (this.#state === undefined || this.#without.size > 0) return;
      onNotice(`the storage server is back after ${seconds(now - this.#state.sinceNs)}`);
      this.#state = undefined;
      this.#gaveUp = false;
      return;
    }
    this.#without.add(session);
    const isWrongDisk = error instanceof RoceError && error.code === 'ERR_ROCE_MISMATCH';
    const isFenced = error instanceof RoceError && error.code === 'ERR_ROCE_FENCED';
    const isNews = this.#state === undefined || this.#state.isWrongDisk !== isWrongDisk;
    if (this.#state === undefined) this.count++;
    const sinceNs = this.#state?.sinceNs ?? now;
    this.#state = { sinceNs, reason: error.message, isWrongDisk };
    if (isFenced) {
      if (!this.#isFenced) onNotice(`FENCED: ${error.message}: requests fail from now on`);
      this.#isFenced = true;
    } else if (now - sinceNs >= giveUpNs) {
      if (!this.#gaveUp) onNotice(`no storage server for ${seconds(now - sinceNs)}: requests fail until it is back`);
      this.#gaveUp = true;
    } else if (isNews && isWrongDisk) onNotice(`REFUSED: ${error.message}; requests wait for the right disk`);
    else if (isNews) {
      const limit =
        giveUpNs === Number.POSITIVE_INFINITY ? 'requests wait for it' : `requests wait for ${seconds(giveUpNs)}`;
      onNotice(`the storage server cannot be reached: ${error.message}; ${limit}`);
    }
  }
}

function seconds(ns: number): string {
  return ns < 10 * NS_PER_S ? formatNs(ns) : `${Math.round(ns / NS_PER_S)} s`;
}
