/**
 * Extra age of the feedback signal, uniform in [0, maxNs] and redrawn every `periodNs` (Zhu et al., CoNEXT'16, figure
 * 20: a congested reverse path). Deterministic: it draws from the stream it is given and from nothing else.
 */

import { checkObject, NS_PER_S, type RandomSource, randomUnit } from 'rocev2/internal/core';
import { checkFunction, checkNs, checkNumber } from '../check-arguments.js';

/** Size and time scale of the jitter. */
export interface JitterParameters {
  /** The largest extra age, in nanoseconds. */
  readonly maxNs: number;
  /** How long one draw holds, in nanoseconds of model time. */
  readonly periodNs: number;
  /** The random stream; with one stream per run, runs are repeatable. */
  readonly random: RandomSource;
}

export class FeedbackJitter {
  readonly #parameters: JitterParameters;
  #seconds = 0;
  #nextDrawNs = 0;

  constructor(parameters: JitterParameters) {
    checkObject('jitter', parameters, 'an object: maxNs, periodNs, random');
    checkNs('maxNs of jitter', parameters.maxNs);
    checkNumber('periodNs of jitter', parameters.periodNs, 1, NS_PER_S);
    checkFunction('random.u32 of jitter', parameters.random?.u32);
    this.#parameters = parameters;
  }

  get maxSeconds(): number {
    return this.#parameters.maxNs * 1e-9;
  }

  at(nowNs: number): number {
    while (nowNs >= this.#nextDrawNs) {
      this.#seconds = randomUnit(this.#parameters.random) * this.maxSeconds;
      this.#nextDrawNs += this.#parameters.periodNs;
    }
    return this.#seconds;
  }
}
