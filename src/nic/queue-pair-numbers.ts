/** Queue pair numbers: unpredictable, and not given out again soon. */

import { type RandomSource, randomInt } from '../core/random.js';

/** QPNs below are special or conventionally left alone (rxe begins at 16 as well). */
const QPN_MIN = 16;
const QPN_MAX = 0xfffffe;
/** A freed QPN is not given out again while this many others have been freed since: late packets must find nobody. */
const QUARANTINE = 256;

export class QueuePairNumbers {
  readonly #random: RandomSource;
  readonly #freed: number[] = [];

  constructor(random: RandomSource) {
    this.#random = random;
  }

  take(isInUse: (qpn: number) => boolean): number {
    for (;;) {
      const qpn = randomInt(this.#random, QPN_MIN, QPN_MAX);
      if (!isInUse(qpn) && !this.#freed.includes(qpn)) return qpn;
    }
  }

  free(qpn: number): void {
    this.#freed.push(qpn);
    if (this.#freed.length > QUARANTINE) this.#freed.shift();
  }
}
