/**
 * Whether data go past the cache, by what that costs here and now. Between two processors whose caches are far apart an ordinary store waits for the line that the reader
 * has, four times as long as a store past the cache takes; where they share a cache, it waits for nothing, and the reader finds the line there. A virtual machine is moved
 * between such processors. So both ways are tried in turn, batch by batch, and again after a while.
 */

/** Batches of each way that are tried. */
const TRIED = 8;
/** Batches until the next trial: tens of milliseconds of a bulk transfer. */
const KEPT = 1024;
/** The reader fetches from memory what went past the cache. What that costs it more is a part of what a packet costs the writer. */
const READERS_PART = 0.15;

/** Chooses for one port, whose batches are written one at a time. */
export class CopyChoice {
  readonly #nowNs: () => number;
  /** Nanoseconds a packet, past the cache and as usual. */
  readonly #past = new Float64Array(TRIED);
  readonly #usual = new Float64Array(TRIED);
  #isPast = true;
  #isTrial = true;
  /** Batches of this trial, or since the last one. */
  #batches = 0;
  #beganNs = 0;

  /** `nowNs`: a monotonic clock. */
  constructor(nowNs: () => number) {
    this.#nowNs = nowNs;
  }

  /** Whether the next batch goes past the cache. */
  get isPast(): boolean {
    return this.#isPast;
  }

  /** A batch begins. */
  begins(): void {
    if (this.#isTrial) this.#beganNs = this.#nowNs();
  }

  /** The batch is written. Only batches long enough that others wait for the stores count. */
  ends(packets: number): void {
    const i = this.#batches++;
    if (!this.#isTrial) {
      if (i === KEPT) this.#begin();
      return;
    }
    const times = this.#isPast ? this.#past : this.#usual;
    times[i >>> 1] = (this.#nowNs() - this.#beganNs) / packets;
    this.#isPast = !this.#isPast;
    if (i === 2 * TRIED - 1) this.#decide();
  }

  #begin(): void {
    this.#isTrial = true;
    this.#isPast = true;
    this.#batches = 0;
  }

  #decide(): void {
    this.#isTrial = false;
    this.#batches = 0;
    const usual = median(this.#usual);
    this.#isPast = median(this.#past) < usual * (1 - READERS_PART);
  }
}

/** Sorts the times. */
function median(times: Float64Array): number {
  return times.sort()[times.length >>> 1];
}
