/** A distribution in bounded memory: 16 classes an octave, so that a percentile is right to 6 %. */

const CLASSES_PER_OCTAVE = 16;
const OCTAVES = 48;

/** Percentiles of measured values. */
export interface DistributionSummary {
  /** How many values. */
  readonly count: number;
  /** The smallest, exactly. */
  readonly min: number;
  /** Right to 6 %. */
  readonly median: number;
  /** Right to 6 %. */
  readonly p99: number;
  /** The largest, exactly. */
  readonly max: number;
}

export class Distribution {
  readonly #counts = new Float64Array(OCTAVES * CLASSES_PER_OCTAVE);
  #count = 0;
  #min = Number.POSITIVE_INFINITY;
  #max = 0;

  add(value: number): void {
    const bounded = Math.max(0, value);
    this.#count++;
    if (bounded < this.#min) this.#min = bounded;
    if (bounded > this.#max) this.#max = bounded;
    this.#counts[classOf(bounded)]++;
  }

  summary(): DistributionSummary | undefined {
    if (this.#count === 0) return undefined;
    return { count: this.#count, min: this.#min, median: this.#at(0.5), p99: this.#at(0.99), max: this.#max };
  }

  #at(share: number): number {
    let left = share * this.#count;
    for (let i = 0; i < this.#counts.length; i++) {
      left -= this.#counts[i];
      if (left <= 0) return Math.min(this.#max, Math.max(this.#min, upperEndOf(i)));
    }
    return this.#max;
  }
}

/** Most are below 2^31, where shifts do what powers of two take twenty times as long for. */
function classOf(value: number): number {
  if (value < CLASSES_PER_OCTAVE) return Math.floor(value);
  if (value < 0x80000000) {
    const whole = value | 0;
    const octave = 31 - Math.clz32(whole);
    return classAt(octave, whole >>> (octave - 4));
  }
  const octave = Math.floor(Math.log2(value));
  return Math.min(classAt(octave, Math.floor(value / 2 ** (octave - 4))), OCTAVES * CLASSES_PER_OCTAVE - 1);
}

function classAt(octave: number, leading: number): number {
  return (octave - 4) * CLASSES_PER_OCTAVE + leading;
}

function upperEndOf(index: number): number {
  if (index < CLASSES_PER_OCTAVE) return index;
  const octave = Math.floor(index / CLASSES_PER_OCTAVE) + 3;
  return (CLASSES_PER_OCTAVE + (index % CLASSES_PER_OCTAVE) + 1) * 2 ** (octave - 4) - 1;
}
