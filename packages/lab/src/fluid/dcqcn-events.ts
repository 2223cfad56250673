/**
 * How often a DCQCN sender cuts and recovers when each of its packets is marked with probability p and it sends R
 * packets/s: the terms a, b, c, d, e of the fluid model (CoNEXT'16, equations 3 to 5).
 *
 * The published terms divide zero by zero at p = 0 and at R = 0. Written with lambda = -ln(1-p) and x/(e^x-1) they have
 * no singular point, and the event terms come out per second instead of per packet: R b and R d.
 */

import type { DcqcnInPackets } from './dcqcn-parameters.js';

/** e^-1000 is zero in double precision: beyond this, certain marking is as certain as it gets. */
const MAX_MARK_EXPONENT = 1000;

/** x / (e^x - 1), 1 at zero. */
function bernoulliRatio(x: number): number {
  return x < 1e-12 ? 1 : x / Math.expm1(x);
}

/** Reused by its owner: {@link update} overwrites the fields, nothing is allocated. */
export class DcqcnEvents {
  /** a: probability that a CNP interval sees a mark, so that the sender cuts. */
  cutProbability = 0;
  alphaMarkProbability = 0;
  /** R (b + d): increase events per second, each of which halves the distance to the target rate. */
  recoveries = 0;
  /** R (c + e): those beyond fast recovery, per second, each of which raises the target rate by R_AI. */
  additiveIncreases = 0;

  readonly #parameters: DcqcnInPackets;

  constructor(parameters: DcqcnInPackets) {
    this.#parameters = parameters;
  }

  /** `markProbability` in 0..1, `rate` in packets/s, at least 0. */
  update(markProbability: number, rate: number): void {
    const { cnpInterval, alphaInterval, rateTimer, byteCounter, fastRecoveryStages } = this.#parameters;
    const lambda = Math.min(-Math.log1p(-markProbability), MAX_MARK_EXPONENT);
    const unmarked = lambda > 0 ? markProbability / lambda : 1;
    const byteExponent = lambda * byteCounter;
    const timerExponent = lambda * rateTimer * rate;
    const byteEvents = ((rate * unmarked) / byteCounter) * bernoulliRatio(byteExponent);
    const timerEvents = (unmarked / rateTimer) * bernoulliRatio(timerExponent);
    this.cutProbability = -Math.expm1(-lambda * cnpInterval * rate);
    this.alphaMarkProbability = -Math.expm1(-lambda * alphaInterval * rate);
    this.recoveries = byteEvents + timerEvents;
    this.additiveIncreases =
      byteEvents * Math.exp(-fastRecoveryStages * byteExponent) +
      timerEvents * Math.exp(-fastRecoveryStages * timerExponent);
  }
}
