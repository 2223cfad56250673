/**
 * Which entropy value the next packet carries, for schemes that spread one connection over many paths. It is an index
 * of a UDP source port, from which switches choose a path: several values may share one, because endpoints do not know
 * the network.
 */

/**
 * Chooses one of a fixed number of entropies, from the outcomes of earlier packets. Every method except `next` may do
 * nothing.
 */
export abstract class EntropyChoice {
  /** The entropy of the next packet, from 0 on; `now` in nanoseconds. */
  abstract next(now: number): number;
  /** A packet of `entropy` has arrived, unmarked. */
  onGood(_way: number, _now: number): void {}
  /** A packet of `entropy` has arrived, and a switch has marked it CE. */
  onMarked(_way: number): void {}
  /** A switch has trimmed a packet of `entropy`. */
  onTrimmed(_way: number): void {}
  /** A packet of `entropy` counts as lost. */
  onLost(_way: number): void {}
  onTimeout(_now: number): void {}
}

/** One entropy value for all packets, as with ECMP. */
export class SingleEntropy extends EntropyChoice {
  override next(): number {
    return 0;
  }
}

/** All entropies in turn, independent of outcomes: oblivious spraying. */
export class RoundRobinEntropies extends EntropyChoice {
  readonly #entropies: number;
  #next = 0;

  constructor(entropies: number) {
    super();
    this.#entropies = entropies;
  }

  override next(): number {
    const entropy = this.#next;
    this.#next = entropy + 1 === this.#entropies ? 0 : entropy + 1;
    return entropy;
  }
}
