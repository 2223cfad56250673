/** Queue pair numbers: unpredictable, and not reused soon. */

import { type RandomSource, randomInt } from '../core/random.js';

/** QPNs below are special or conventionally left alone (rxe begins at 16 as well). */
const QPN_MIN = 16;
const QPN_MAX = 0xfffffe;
/** A freed QPN is reused only after this many others have been freed, so that late packets find no queue pair. */
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
