/**
 * Chooses by measurement whether copies bypass the cache: between processors with distant caches an ordinary store
 * takes four times as long as a non-temporal one, with a shared cache it is faster. Virtual machines move between
 * processors, so both are tried again after a while.
 */

const TRIED = 8;
/** Batches until the next trial: tens of milliseconds of a bulk transfer. */
const KEPT = 1024;
/**
 * The reader fetches data that bypassed the cache from memory. Its extra cost is a share of the writer's cost of a
 * packet.
 */
const READERS_PART = 0.15;

export class CopyChoice {
  readonly #nowNs: () => number;
  readonly #past = new Float64Array(TRIED);
  readonly #usual = new Float64Array(TRIED);
  #isPast = true;
  #isTrial = true;
  #batches = 0;
  #beganNs = 0;

  constructor(nowNs: () => number) {
    this.#nowNs = nowNs;
  }

  get isPast(): boolean {
    return this.#isPast;
  }

  begins(): void {
    if (this.#isTrial) this.#beganNs = this.#nowNs();
  }

  /** Only batches long enough that others wait for the stores count. */
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

function median(times: Float64Array): number {
  return times.sort()[times.length >>> 1];
}
