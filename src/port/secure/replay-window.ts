/**
 * Records the counters of packets, so that each packet is accepted once (RFC 4303 §3.4.3; the bitmap is that of RFC
 * 6479: words are reused, and nothing is shifted). Counters are whole numbers up to 2^53, which 10 million packets per
 * second reach after 28 years.
 */

/** Packets of a large window on another path may arrive after 1,024 others. */
export const REPLAY_WINDOW_PACKETS = 8192;

const WORD_BITS = 32;
/** One word more than the window has: the newest word is only partly in use. */
const WORDS = REPLAY_WINDOW_PACKETS / WORD_BITS + 1;

export const COUNTER_NEW = 0;
export const COUNTER_SEEN = 1;
export const COUNTER_OLD = 2;

/** `judge` first; `take` only once the packet is authentic. */
export class ReplayWindow {
  readonly #seen = new Int32Array(WORDS);
  /** One past the highest counter that was taken; in an array, so that no number is allocated. */
  readonly #next = new Float64Array(1);

  get next(): number {
    return this.#next[0];
  }

  check(counter: number): number {
    const next = this.#next[0];
    if (counter >= next) return COUNTER_NEW;
    if (next - counter > REPLAY_WINDOW_PACKETS) return COUNTER_OLD;
    return (this.#seen[wordOf(counter)] & bitOf(counter)) === 0 ? COUNTER_NEW : COUNTER_SEEN;
  }

  take(counter: number): void {
    const next = this.#next[0];
    if (counter >= next) {
      const from = Math.floor((next + WORD_BITS - 1) / WORD_BITS);
      const to = Math.floor(counter / WORD_BITS);
      const cleared = Math.min(to - from + 1, WORDS);
      for (let i = 0; i < cleared; i++) this.#seen[(to - i) % WORDS] = 0;
      this.#next[0] = counter + 1;
    }
    this.#seen[wordOf(counter)] |= bitOf(counter);
  }
}

function wordOf(counter: number): number {
  return Math.floor(counter / WORD_BITS) % WORDS;
}

function bitOf(counter: number): number {
  return 1 << (counter % WORD_BITS);
}
