/** Each condition sees every packet of its direction exactly once, in order. */

import { type RandomSource, randomUnit } from '../../core/random.js';
import { psnInRange } from '../../packet/psn.js';
import type { FaultSubject } from './fault-subject.js';

export interface Condition {
  /** Counts and draws random numbers: call it once per packet. */
  matches(subject: FaultSubject): boolean;
}

/** The rule of the SIGCOMM'16 livelock experiment: on sequential identifications, exactly one packet in 256. */
export class IpIdLowByte implements Condition {
  readonly #value: number;

  constructor(value: number) {
    this.#value = value;
  }

  matches(subject: FaultSubject): boolean {
    return subject.ipId >= 0 && (subject.ipId & 0xff) === this.#value;
  }
}

export class EveryNth implements Condition {
  readonly #n: number;
  #seen = 0;

  constructor(n: number) {
    this.#n = n;
  }

  matches(): boolean {
    if (++this.#seen < this.#n) return false;
    this.#seen = 0;
    return true;
  }
}

export class AtRandom implements Condition {
  readonly #rate: number;
  readonly #random: RandomSource;

  constructor(rate: number, random: RandomSource) {
    this.#rate = rate;
    this.#random = random;
  }

  matches(): boolean {
    return randomUnit(this.#random) < this.#rate;
  }
}

/**
 * Gilbert-Elliott: a two-state Markov chain that moves once per packet. The long-run share of bad packets is goodToBad
 * / (goodToBad + badToGood), a stay in the bad state lasts 1 / badToGood packets on average.
 */
export class GilbertElliott implements Condition {
  readonly #goodToBad: number;
  readonly #badToGood: number;
  readonly #lossInBad: number;
  readonly #random: RandomSource;
  #bad = false;

  constructor(goodToBad: number, badToGood: number, lossInBad: number, random: RandomSource) {
    this.#goodToBad = goodToBad;
    this.#badToGood = badToGood;
    this.#lossInBad = lossInBad;
    this.#random = random;
  }

  matches(): boolean {
    const moves = randomUnit(this.#random) < (this.#bad ? this.#badToGood : this.#goodToBad);
    if (moves) this.#bad = !this.#bad;
    return this.#bad && randomUnit(this.#random) < this.#lossInBad;
  }
}

/** first <= PSN <= last in sequence order, so that a range may cross the wrap at 2^24. */
export class PsnRange implements Condition {
  readonly #first: number;
  readonly #last: number;

  constructor(first: number, last: number) {
    this.#first = first;
    this.#last = last;
  }

  matches(subject: FaultSubject): boolean {
    return psnInRange(subject.psn, this.#first, this.#last);
  }
}

export class OpcodeIn implements Condition {
  readonly #opcodes: ReadonlySet<number>;

  constructor(opcodes: ReadonlySet<number>) {
    this.#opcodes = opcodes;
  }

  matches(subject: FaultSubject): boolean {
    return this.#opcodes.has(subject.opcode);
  }
}
