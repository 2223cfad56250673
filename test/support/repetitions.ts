/**
 * Tests that repeat one kind of proof: the quick suite repeats it often enough to meet all that it is to meet, the long suite, which runs the same
 * files once more, as often as shall be.
 */

import process from 'node:process';

/** Set by vitest.long.config.ts. */
export const IS_LONG = process.env['LONG_SUITE'] !== undefined;

/** How often a test repeats its proof. */
export function repetitions(quick: number, long: number, isLong = IS_LONG): number {
  return isLong ? long : quick;
}

/** The cases of which the quick suite takes the first `quick`. */
export function repeated<T>(quick: number, cases: readonly T[], isLong = IS_LONG): T[] {
  return cases.slice(0, repetitions(quick, cases.length, isLong));
}
