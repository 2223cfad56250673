/**
 * The emulated rate of a link: frames leave one behind the other, each for the time it would take on the wire. Timers are a millisecond
 * coarse, so a link with frames waiting may catch up what it missed, up to a bound; a link that had nothing to send may not.
 */

import { ETHERNET_WIRE_BYTES } from 'rocev2/internal/packet';

const CATCH_UP_NS_MAX = 10e6;

/** One direction of one link. */
export class LinkPacer {
  readonly #nsPerByte: number;
  #freeNs = 0;
  #isIdle = true;

  /** Infinity: frames take no time. */
  constructor(rateBps: number) {
    this.#nsPerByte = 8e9 / rateBps;
  }

  /** When the link has sent everything it was given; Infinity when nobody waits for that. */
  get nextNs(): number {
    return this.#isIdle ? Number.POSITIVE_INFINITY : this.#freeNs;
  }

  /** Whether the link is free at `nowNs`; if not, ask again at {@link nextNs}. */
  mayStart(nowNs: number): boolean {
    const earliestNs = this.#isIdle ? nowNs : nowNs - CATCH_UP_NS_MAX;
    this.#freeNs = Math.max(this.#freeNs, earliestNs);
    return this.#freeNs <= nowNs;
  }

  /** A frame was given to the link, which {@link mayStart} allowed. */
  sent(frameBytes: number): void {
    this.#isIdle = false;
    this.#freeNs += (frameBytes + ETHERNET_WIRE_BYTES) * this.#nsPerByte;
  }

  /** The link could have sent and had nothing to send. */
  idle(): void {
    this.#isIdle = true;
  }
}
