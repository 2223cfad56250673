/** GETs at a fixed pace, whether or not the ones before were answered: so a stop of the owner delays all that would have been asked during it. */

import { nowNs } from 'rocev2/internal/driver';
import { valueFor } from './values.js';

/** GETs that are due are asked so often. */
const TICK_MS = 5;

/** A GET that was asked, and what became of it. */
export interface Sample {
  /** When it was asked, by the system's monotonic clock. */
  readonly askedNs: number;
  /** Until the answer, or until the end of the measurement if there was none. */
  readonly latencyNs: number;
}

/** One reader's GETs. */
export class PacedGets {
  readonly #get: (key: number) => Promise<string>;
  readonly #perSecond: number;
  readonly #keys: number;
  readonly #samples: Sample[] = [];
  /** When those were asked that have no answer yet, the oldest first. */
  readonly #open = new Set<{ readonly askedNs: number }>();
  #startNs = 0;
  #asked = 0;
  #timer: NodeJS.Timeout | undefined;
  #failure: unknown;

  /** `get` resolves to the value of the key with this number. */
  constructor(get: (key: number) => Promise<string>, perSecond: number, keys: number) {
    this.#get = get;
    this.#perSecond = perSecond;
    this.#keys = keys;
  }

  /** Begins to ask. */
  start(): void {
    this.#startNs = nowNs();
    this.#timer = setInterval(() => this.#ask(), TICK_MS);
  }

  #ask(): void {
    const due = Math.floor(((nowNs() - this.#startNs) / 1e9) * this.#perSecond);
    for (; this.#asked < due; this.#asked++) void this.#askOne(this.#asked % this.#keys);
  }

  async #askOne(key: number): Promise<void> {
    const open = { askedNs: nowNs() };
    this.#open.add(open);
    try {
      const value = await this.#get(key);
      if (value !== valueFor(key)) throw new Error(`the value of key ${key} is that of another one`);
      this.#samples.push({ ...open, latencyNs: nowNs() - open.askedNs });
      this.#open.delete(open);
    } catch (error) {
      this.#failure ??= error;
    }
  }

  /** The longest that a GET took, of those answered since `sinceNs`, or has waited for its answer until now; 0 without any. */
  worstNs(sinceNs: number): number {
    const [oldest] = this.#open;
    let worst = oldest === undefined ? 0 : nowNs() - oldest.askedNs;
    for (let k = this.#samples.length - 1; k >= 0; k--) {
      const { askedNs, latencyNs } = this.#samples[k];
      if (askedNs + latencyNs < sinceNs) break;
      worst = Math.max(worst, latencyNs);
    }
    return worst;
  }

  /** Asks no more, and returns all samples. Throws what the first GET failed with, and for a wrong value. */
  end(): readonly Sample[] {
    clearInterval(this.#timer);
    if (this.#failure !== undefined) throw this.#failure;
    const endNs = nowNs();
    const unanswered = [...this.#open].map(({ askedNs }) => ({ askedNs, latencyNs: endNs - askedNs }));
    return [...this.#samples, ...unanswered];
  }
}
