/**
 * The bitmap of the Ultra Ethernet Consortium's htsim: entropies in turn, but one that did badly is passed over, once
 * for each point of its penalty. So a bad entropy is tried again after some rounds, and used again when it has become
 * good; nothing has to probe it.
 */

import { EntropyChoice, RoundRobinEntropies } from './entropy-choice.js';

/** Points for a mark, a cut packet, and a loss or timeout: those of the model. */
const MARK_PENALTY = 1;
const TRIM_PENALTY = 4;
const LOSS_PENALTY = 15;
/** Points that one entropy value can have: it is tried once in so many rounds at least. */
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

  /** Ends: each entropy that is passed over has a point less then. */
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
