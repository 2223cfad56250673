/**
 * The emulated rate of a link. Timers are a millisecond coarse, so a link with waiting frames may catch up what it
 * missed, up to a bound; an idle link may not.
 */

import { ETHERNET_WIRE_BYTES } from 'rocev2/internal/packet';

const CATCH_UP_NS_MAX = 10e6;

export class LinkPacer {
  readonly #nsPerByte: number;
  #freeNs = 0;
  #isIdle = true;

  constructor(rateBps: number) {
    this.#nsPerByte = 8e9 / rateBps;
  }

  get nextNs(): number {
    return this.#isIdle ? Number.POSITIVE_INFINITY : this.#freeNs;
  }

  mayStart(nowNs: number): boolean {
    const earliestNs = this.#isIdle ? nowNs : nowNs - CATCH_UP_NS_MAX;
    this.#freeNs = Math.max(this.#freeNs, earliestNs);
    return this.#freeNs <= nowNs;
  }

  sent(frameBytes: number): void {
    this.#isIdle = false;
    this.#freeNs += (frameBytes + ETHERNET_WIRE_BYTES) * this.#nsPerByte;
  }

  idle(): void {
    this.#isIdle = true;
  }
}
