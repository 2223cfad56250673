/**
 * Which of several implementations of one function a thread uses: the fastest of those that are there and right. What is there differs from system to
 * system, and what is fast from processor to processor, so each is tried: first whether it is right, then how long it takes. An environment variable names one instead.
 */

import { RoceError } from '../core/errors.js';
import { nowNs } from './system-clock.js';
import { cleanVectorState } from './vector-state.js';

/** Makes an implementation, or throws why it cannot be had. */
export type Candidate<T> = () => T;

/** What is chosen, and how. */
export interface Contest<T> {
  /** For errors: `CRC-32`. */
  readonly what: string;
  /** Environment variable that names one, which is then used or nothing is. */
  readonly variable: string;
  /** The self-test. */
  readonly isRight: (implementation: T) => boolean;
  /** What one does that fails it. */
  readonly wrong: string;
}

/** One that is tried later has to cost this much of the best before it: what lies nearer is noise, and the choice should not change from run to run. */
const CHEAPER = 0.95;

/** What {@link fastestOf} does beside trying candidates. */
export interface Around<T> {
  /** What always loses where anything else is right, so that measuring it is time for nothing: tried only where nothing else is. */
  readonly lastResort?: Candidate<T> | undefined;
  /** Called behind each candidate: what one leaves in the processor's registers slows down the next one, and the thread ever after. */
  readonly clean?: () => void;
}

/** The one of `candidates` that costs least, of those that can be had and are right. Throws ERR_ROCE_UNSUPPORTED when there is none. */
export function fastestOf<T>(
  contest: Contest<T>,
  candidates: Iterable<Candidate<T>>,
  costOf: (one: T) => number,
  { lastResort, clean = cleanVectorState }: Around<T> = {},
): T {
  let fastest: T | undefined;
  let leastCost = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const implementation = rightOne(contest, candidate);
    const cost = typeof implementation === 'string' ? Number.POSITIVE_INFINITY : costOf(implementation);
    clean();
    if (typeof implementation === 'string' || cost > leastCost * CHEAPER) continue;
    leastCost = cost;
    fastest = implementation;
  }
  if (fastest !== undefined) return fastest;
  const last = lastResort && rightOne(contest, lastResort);
  if (last !== undefined && typeof last !== 'string') return last;
  throw new RoceError('ERR_ROCE_UNSUPPORTED', `no ${contest.what} here is right: each ${contest.wrong}`);
}

/**
 * The one of `candidates` with this name. Throws ERR_ROCE_UNKNOWN_NAME for a name that none has, and ERR_ROCE_UNSUPPORTED where it cannot be had or is
 * wrong.
 */
export function namedOne<T>(contest: Contest<T>, name: string, candidates: Readonly<Record<string, Candidate<T>>>): T {
  const { variable } = contest;
  const names = Object.keys(candidates).join(', ');
  if (!Object.hasOwn(candidates, name)) {
    throw new RoceError('ERR_ROCE_UNKNOWN_NAME', `${variable} is '${name}'`, `it is one of ${names}`);
  }
  const implementation = rightOne(contest, candidates[name]);
  if (typeof implementation !== 'string') return implementation;
  throw new RoceError(
    'ERR_ROCE_UNSUPPORTED',
    `${variable} asks for ${name}: ${implementation}`,
    `install it, name another of ${names}, or leave ${variable} out: then the fastest that works is taken`,
  );
}

/** The implementation, or why it cannot be used. */
function rightOne<T>({ isRight, wrong }: Contest<T>, candidate: Candidate<T>): T | string {
  try {
    const implementation = candidate();
    return isRight(implementation) ? implementation : `it ${wrong}`;
  } catch (error) {
    return (error as Error).message.split('\n')[0];
  }
}

/** Nanoseconds that `work` takes: of many looks within `forNs` the quickest, which other work on the machine disturbed least. */
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
