/**
 * Pacing: spreads a flow's packets so that they leave at its rate. Packet by packet, or in bursts of `burstBytes` with
 * pauses between them, as Azure's first NIC generation does to keep few queue pairs active.
 *
 * Each packet delays the next one by its length over the rate. A flow that is served late, because the wire was busy or
 * the event loop slow, may catch up for at most the last `catchUpNs`. A flow that had nothing to send has nothing to
 * catch up.
 */

import type { RateControl } from './rate-control.js';

/** When the data packets of one flow may leave. Times are in nanoseconds. */
export interface Pacer {
  /** Data packets may leave from this time on. */
  readonly opensNs: number;
  /** A data packet of that many bytes on the link leaves now. */
  onSent(wireBytes: number, now: number): void;
  /** There is nothing to send. */
  idle(): void;
}

export const UNPACED: Pacer = { opensNs: Number.NEGATIVE_INFINITY, onSent() {}, idle() {} };

const NS_BITS_PER_BYTE = 8e9;

/** Follows the rate of a {@link RateControl} and reports sent packets to it. */
export class RatePacer implements Pacer {
  readonly #rate: RateControl;
  readonly #burstBytes: number;
  readonly #catchUpNs: number;
  #paidNs = Number.NEGATIVE_INFINITY;
  #burstLeft: number;
  #isIdle = true;
  opensNs = Number.NEGATIVE_INFINITY;

  /** `burstBytes` 0: packet by packet. */
  constructor(rate: RateControl, burstBytes: number, catchUpNs: number) {
    this.#rate = rate;
    this.#burstBytes = burstBytes;
    this.#burstLeft = burstBytes;
    this.#catchUpNs = catchUpNs;
  }

  onSent(wireBytes: number, now: number): void {
    this.#rate.onSent(wireBytes, now);
    const costNs = (wireBytes * NS_BITS_PER_BYTE) / this.#rate.rateBps(now);
    this.#paidNs = Math.max(this.#paidNs, this.#isIdle ? now : now - this.#catchUpNs) + costNs;
    this.#isIdle = false;
    this.#burstLeft -= wireBytes;
    if (this.#burstLeft > 0) return;
    this.#burstLeft = this.#burstBytes;
    this.opensNs = this.#paidNs;
  }

  idle(): void {
    this.#isIdle = true;
  }
}
