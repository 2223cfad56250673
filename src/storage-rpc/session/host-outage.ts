/**
 * Whether a host can be reached, with one event each when an outage begins, its actionable reason changes, requests
 * begin to fail, and it ends. Sans-IO.
 */

import type { Clock } from '../../core/clock.js';
import { RoceError } from '../../core/errors.js';
import type { HostEvent } from './host-event.js';

export interface OutageState {
  readonly sinceNs: number;
  readonly reason: string;
  readonly isWrongDisk: boolean;
}

interface OutageOptions {
  readonly clock: Clock;
  readonly onEvent: (event: HostEvent) => void;
  readonly giveUpNs?: number;
}

export class HostOutage {
  count = 0;
  readonly #options: OutageOptions;
  readonly #without = new Set<object>();
  #state: OutageState | undefined;
  #gaveUp = false;
  #isFenced = false;

  constructor(options: OutageOptions) {
    this.#options = options;
  }

  get state(): OutageState | undefined {
    return this.#state;
  }

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
