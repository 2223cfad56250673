/**
 * Selects the implementation of a function for a thread, by default the fastest that is available and correct.
 * Availability depends on the system, and speed on the processor, so each is first tested and then timed. An
 * environment variable can name one instead.
 */

import { RoceError } from '../core/errors.js';
import { nowNs } from './system-clock.js';
import { cleanVectorState } from './vector-state.js';

/** Makes an implementation, or throws the reason why it is not available. */
export type ImplementationFactory<T> = () => T;

/** Parameters of a selection. */
export interface SelectionRules<T> {
  readonly what: string;
  /** The environment variable that names one, which is then used, or nothing is. */
  readonly variable: string;
  /** By name, in the order in which they usually win. */
  readonly candidates: Readonly<Record<string, ImplementationFactory<T>>>;
  /**
   * The name of a candidate that is slower than all others: it is tested only where no other is correct, and never
   * timed.
   */
  readonly lastResort?: string;
  readonly isCorrect: (implementation: T) => boolean;
  /** How an implementation fails the self-test. */
  readonly failure: string;
  /** Nanoseconds for a usual amount of work. */
  readonly costOf: (implementation: T) => number;
  /**
   * Called after each candidate, because the state that it leaves in processor registers slows down the next one and
   * the thread.
   */
  readonly clean?: () => void;
}

/**
 * A later candidate has to cost at most this share of the best so far: a smaller difference is noise, and the selection
 * should not change from run to run.
 */
const CHEAPER = 0.95;

/** Selects one implementation for this thread. */
export class ImplementationSelection<T> {
  readonly #rules: SelectionRules<T>;
  #selectedFor: string | undefined;
  #selected: T | undefined;

  constructor(rules: SelectionRules<T>) {
    this.#rules = rules;
  }

  /**
   * The implementation `wanted`, by default that of the environment variable; the fastest where that is empty. It is
   * selected once for each name. Throws ERR_ROCE_UNKNOWN_NAME for a name that no candidate has, and
   * ERR_ROCE_UNSUPPORTED where nothing is available and correct.
   */
  select(wanted: string = process.env[this.#rules.variable] ?? ''): T {
    if (this.#selected === undefined || this.#selectedFor !== wanted) {
      this.#selected = wanted === '' ? this.#fastest() : this.#named(wanted);
      this.#selectedFor = wanted;
    }
    return this.#selected;
  }

  #fastest(): T {
    const { what, candidates, lastResort, failure, costOf, clean = cleanVectorState } = this.#rules;
    let fastest: T | undefined;
    let leastCost = Number.POSITIVE_INFINITY;
    for (const [name, candidate] of Object.entries(candidates)) {
      if (name === lastResort) continue;
      const implementation = this.#tested(candidate);
      const cost = typeof implementation === 'string' ? Number.POSITIVE_INFINITY : costOf(implementation);
      clean();
      if (typeof implementation === 'string' || cost > leastCost * CHEAPER) continue;
      leastCost = cost;
      fastest = implementation;
    }
    if (fastest !== undefined) return fastest;
    const last = lastResort === undefined ? undefined : this.#tested(candidates[lastResort]);
    if (last !== undefined && typeof last !== 'string') return last;
    throw new RoceError('ERR_ROCE_UNSUPPORTED', `no ${what} here is right: each ${failure}`);
  }

  #named(name: string): T {
    const { variable, candidates } = this.#rules;
    const names = Object.keys(candidates).join(', ');
    if (!Object.hasOwn(candidates, name)) {
      throw new RoceError('ERR_ROCE_UNKNOWN_NAME', `${variable} is '${name}'`, `it is one of ${names}`);
    }
    const implementation = this.#tested(candidates[name]);
    if (typeof implementation !== 'string') return implementation;
    throw new RoceError(
      'ERR_ROCE_UNSUPPORTED',
      `${variable} asks for ${name}: ${implementation}`,
      `install it, name another of ${names}, or leave ${variable} out: then the fastest that works is taken`,
    );
  }

  #tested(candidate: ImplementationFactory<T>): T | string {
    const { isCorrect, failure } = this.#rules;
    try {
      const implementation = candidate();
      return isCorrect(implementation) ? implementation : `it ${failure}`;
    } catch (error) {
      return (error as Error).message.split('\n')[0];
    }
  }
}

/**
 * Nanoseconds that `work` takes: the shortest of many runs within `forNs`, which other work on the machine disturbed
 * least.
 */
export function leastNs(work: () => void, forNs: number): number {
  const endNs = nowNs() + forNs;
  let least = Number.POSITIVE_INFINITY;
  for (let beforeNs = nowNs(); beforeNs < endNs; ) {
    work();
    const afterNs = nowNs();
    least = Math.min(least, afterNs - beforeNs);
    beforeNs = afterNs;
  }
  return least;
}
