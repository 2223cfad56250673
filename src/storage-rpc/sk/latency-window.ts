/** Latencies of the newest requests: enough for a percentile, bounded, and cheap to keep. */

const SAMPLES = 128;
/** With fewer there is nothing to compare with. */
const SAMPLES_MIN = 16;

/** The newest latencies in nanoseconds. */
export class LatencyWindow {
  readonly #samplesNs = new Float64Array(SAMPLES);
  #count = 0;

  /** One more; the oldest makes room. */
  add(ns: number): void {
    this.#samplesNs[this.#count % SAMPLES] = ns;
    this.#count++;
  }

  /** Forgets all. */
  clear(): void {
    this.#count = 0;
  }

  /** The 99th percentile, ns; undefined while there are too few samples. */
  get p99Ns(): number | undefined {
    const known = Math.min(this.#count, SAMPLES);
    if (known < SAMPLES_MIN) return undefined;
    return this.#samplesNs.slice(0, known).sort()[Math.ceil(0.99 * known) - 1];
  }
}
