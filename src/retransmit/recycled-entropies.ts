/**
 * REPS (Bonato et al., "REPS: Recycled Entropies for Packet Spraying", 2024, arXiv 2407.21625): an entropy value whose
 * packet arrived unmarked is used again, once. The only state is a ring of the last eight such entropies. With nothing
 * to recycle, entropies are explored.
 *
 * After a timeout the ring freezes: its entropies are used repeatedly, in turn, and nothing is explored, because an
 * explored entropy may be the failed one. The first acknowledgement after `freezeNs` thaws it; then a few packets
 * explore.
 *
 * Exploration is in turn here, not at random as published: this engine has no source of randomness.
 */

import { EntropyChoice, RoundRobinEntropies } from './entropy-choice.js';

/**
 * Entropies that the ring holds, and packets that explore after a freeze. Both as published in the Ultra Ethernet
 * Consortium's htsim.
 */
const RING_ENTROPIES = 8;
const EXPLORING_PACKETS = 16;

/** Entropies that are recycled. */
export class RecycledEntropies extends EntropyChoice {
  readonly #roundRobin: RoundRobinEntropies;
  readonly #freezeNs: number;
  readonly #ring = new Uint16Array(RING_ENTROPIES);
  /** Where the next entropy goes. */
  #head = 0;
  /** Entropies after the head that have not been reused. */
  #fresh = 0;
  /** Entries that ever held an entropy value. */
  #filled = 0;
  #exploring = 0;
  /** The ring is frozen until the first acknowledgement from then on; -1: it is not. */
  #thawNs = -1;

  constructor(entropies: number, freezeNs: number) {
    super();
    this.#roundRobin = new RoundRobinEntropies(entropies);
    this.#freezeNs = freezeNs;
  }

  get isFreezing(): boolean {
    return this.#thawNs >= 0;
  }

  override next(): number {
    if (this.#exploring > 0) {
      this.#exploring--;
      return this.#roundRobin.next();
    }
    if (this.#fresh > 0) {
      const entropy = this.#ring[(this.#head - this.#fresh + RING_ENTROPIES) % RING_ENTROPIES];
      this.#fresh--;
      return entropy;
    }
    if (!this.isFreezing || this.#filled === 0) return this.#roundRobin.next();
    const entropy = this.#ring[this.#head % this.#filled];
    this.#head = (this.#head + 1) % this.#filled;
    return entropy;
  }

  override onGood(entropy: number, now: number): void {
    this.#ring[this.#head] = entropy;
    this.#head = (this.#head + 1) % RING_ENTROPIES;
    this.#fresh = Math.min(RING_ENTROPIES, this.#fresh + 1);
    this.#filled = Math.min(RING_ENTROPIES, this.#filled + 1);
    if (!this.isFreezing || now < this.#thawNs) return;
    this.#thawNs = -1;
    this.#exploring = EXPLORING_PACKETS;
  }

  override onTimeout(now: number): void {
    if (this.isFreezing || this.#exploring > 0) return;
    this.#thawNs = now + this.#freezeNs;
  }
}
