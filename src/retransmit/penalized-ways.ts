/**
 * The bitmap of the Ultra Ethernet Consortium's htsim: ways in turn, but one that did badly is passed over, once for each point of its penalty. So a bad way
 * is tried again after some rounds, and used again when it has become good; nothing has to probe it.
 */

import { WayChoice, WaysInTurn } from './way-choice.js';

/** Points for a mark, a cut packet, and a loss or timeout: those of the model. */
const MARK_PENALTY = 1;
const TRIM_PENALTY = 4;
const LOSS_PENALTY = 15;
/** Points that one way can have: it is tried once in so many rounds at least. */
const PENALTY_MAX = 255;

/** Ways with penalties. */
export class PenalizedWays extends WayChoice {
  readonly #turn: WaysInTurn;
  readonly #penalties: Uint8Array;

  constructor(ways: number) {
    super();
    this.#turn = new WaysInTurn(ways);
    this.#penalties = new Uint8Array(ways);
  }

  /** Ends: each way that is passed over has a point less then. */
  override next(): number {
    for (;;) {
      const way = this.#turn.next();
      if (this.#penalties[way] === 0) return way;
      this.#penalties[way]--;
    }
  }

  override onMarked(way: number): void {
    this.#punish(way, MARK_PENALTY);
  }

  override onTrimmed(way: number): void {
    this.#punish(way, TRIM_PENALTY);
  }

  override onLost(way: number): void {
    this.#punish(way, LOSS_PENALTY);
  }

  #punish(way: number, points: number): void {
    this.#penalties[way] = Math.min(PENALTY_MAX, this.#penalties[way] + points);
  }
}
