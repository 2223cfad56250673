/**
 * REPS (Bonato et al., "REPS: Recycled Entropies for Packet Spraying", 2024, arXiv 2407.21625): a way that brought a packet through unmarked is used
 * again, once. A ring of the last eight such ways is all there is to remember. With nothing to recycle, ways are explored.
 *
 * After a timeout the ring freezes: its ways are used again and again, in turn, and nothing is explored, because what is explored may be what failed. The first
 * acknowledgement after `freezeNs` thaws it; then a few packets explore.
 *
 * Exploration is in turn here, not at random as published: this engine has no randomness of its own.
 */

import { WayChoice, WaysInTurn } from './way-choice.js';

/** Ways that the ring holds, and packets that explore after a freeze. Both as published in the Ultra Ethernet Consortium's htsim. */
const RING_WAYS = 8;
const EXPLORING_PACKETS = 16;

/** Ways that are recycled. */
export class RecycledWays extends WayChoice {
  readonly #turn: WaysInTurn;
  readonly #freezeNs: number;
  readonly #ring = new Uint16Array(RING_WAYS);
  /** Where the next way goes. */
  #head = 0;
  /** Ways behind the head that have not been used again. */
  #fresh = 0;
  /** Entries that ever held a way. */
  #filled = 0;
  #exploring = 0;
  /** The ring is frozen until the first acknowledgement from then on; -1: it is not. */
  #thawNs = -1;

  constructor(ways: number, freezeNs: number) {
    super();
    this.#turn = new WaysInTurn(ways);
    this.#freezeNs = freezeNs;
  }

  /** The ring is frozen. */
  get isFrozen(): boolean {
    return this.#thawNs >= 0;
  }

  override next(): number {
    if (this.#exploring > 0) {
      this.#exploring--;
      return this.#turn.next();
    }
    if (this.#fresh > 0) {
      const way = this.#ring[(this.#head - this.#fresh + RING_WAYS) % RING_WAYS];
      this.#fresh--;
      return way;
    }
    if (!this.isFrozen || this.#filled === 0) return this.#turn.next();
    const way = this.#ring[this.#head % this.#filled];
    this.#head = (this.#head + 1) % this.#filled;
    return way;
  }

  override onGood(way: number, now: number): void {
    this.#ring[this.#head] = way;
    this.#head = (this.#head + 1) % RING_WAYS;
    this.#fresh = Math.min(RING_WAYS, this.#fresh + 1);
    this.#filled = Math.min(RING_WAYS, this.#filled + 1);
    if (!this.isFrozen || now < this.#thawNs) return;
    this.#thawNs = -1;
    this.#exploring = EXPLORING_PACKETS;
  }

  override onTimeout(now: number): void {
    if (this.isFrozen || this.#exploring > 0) return;
    this.#thawNs = now + this.#freezeNs;
  }
}
