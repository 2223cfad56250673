const SAMPLES = 128;
const SAMPLES_MIN = 16;

export class LatencyWindow {
  readonly #samplesNs = new Float64Array(SAMPLES);
  #count = 0;

  add(ns: number): void {
    this.#samplesNs[this.#count % SAMPLES] = ns;
    this.#count++;
  }

  clear(): void {
    this.#count = 0;
  }

  get p99Ns(): number | undefined {
    const known = Math.min(this.#count, SAMPLES);
    if (known < SAMPLES_MIN) return undefined;
    return this.#samplesNs.slice(0, known).sort()[Math.ceil(0.99 * known) - 1];
  }
}
