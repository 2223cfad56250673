/**
 * The bitmap of the Ultra Ethernet Consortium's htsim: entropies in turn, but one with a penalty is skipped, once for
 * each of its points. So a bad entropy is tried again after some rounds, and used again when it has recovered, without
 * probes.
 */

import { EntropyChoice, RoundRobinEntropies } from './entropy-choice.js';

/** Points for a mark, a trimmed packet, and a loss or timeout: those of the model. */
const MARK_PENALTY = 1;
const TRIM_PENALTY = 4;
const LOSS_PENALTY = 15;
/** Most points of one entropy value: it is tried at least once in this many rounds. */
const PENALTY_MAX = 255;

/** Entropies with penalties. */
export class PathPenaltyBitmap extends EntropyChoice {
  readonly #roundRobin: RoundRobinEntropies;
  readonly #penalties: Uint8Array;

  constructor(entropies: number) {
    super();
    this.#roundRobin = new RoundRobinEntropies(entropies);
    this.#penalties = new Uint8Array(entropies);
  }

  /** Terminates, because each skipped entropy loses a point. */
  override next(): number {
    for (;;) {
      const entropy = this.#roundRobin.next();
      if (this.#penalties[entropy] === 0) return entropy;
      this.#penalties[entropy]--;
    }
  }

  override onMarked(entropy: number): void {
    this.#penalize(entropy, MARK_PENALTY);
  }

  override onTrimmed(entropy: number): void {
    this.#penalize(entropy, TRIM_PENALTY);
  }

  override onLost(entropy: number): void {
    this.#penalize(entropy, LOSS_PENALTY);
  }

  #penalize(entropy: number, points: number): void {
    this.#penalties[entropy] = Math.min(PENALTY_MAX, this.#penalties[entropy] + points);
  }
}
