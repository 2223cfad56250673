/**
 * Which way the next packet takes, for schemes that spread one connection over many. A way is a UDP source port, the entropy of RoCEv2: what switches make of
 * it is their business, so several ways may share a path, and nobody here knows the network.
 */

/** Chooses one of a fixed number of ways, from what became of earlier packets. Every method but `next` may do nothing. */
export abstract class WayChoice {
  /** The way of the next packet, from 0 on; `now` in nanoseconds. */
  abstract next(now: number): number;
  /** A packet of `way` has arrived, unmarked. */
  onGood(_way: number, _now: number): void {}
  /** A packet of `way` has arrived, and a switch has marked it CE. */
  onMarked(_way: number): void {}
  /** A switch has cut a packet of `way`. */
  onTrimmed(_way: number): void {}
  /** A packet of `way` counts as lost. */
  onLost(_way: number): void {}
  /** Nothing was heard for a whole timeout. */
  onTimeout(_now: number): void {}
}

/** One way for all packets: what ECMP gives a connection. */
export class OneWay extends WayChoice {
  override next(): number {
    return 0;
  }
}

/** All ways in turn, whatever becomes of the packets: oblivious spraying. */
export class WaysInTurn extends WayChoice {
  readonly #ways: number;
  #next = 0;

  constructor(ways: number) {
    super();
    this.#ways = ways;
  }

  override next(): number {
    const way = this.#next;
    this.#next = way + 1 === this.#ways ? 0 : way + 1;
    return way;
  }
}
