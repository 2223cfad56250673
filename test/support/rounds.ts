/**
 * Rounds: continuous integration runs a fifth of what differs in parameters alone, another fifth the next time.
 *
 * Each round holds every kind of proof, and five rounds hold everything. `ROUND=2 npm run test:disk` runs one round again; without the
 * variable, everything runs.
 */

import process from 'node:process';

/** Odd, so that a round meets both roles, families and MTUs: cells that differ in them come in twos. */
export const ROUNDS = 5;

/** The round, 0 to `ROUNDS` - 1, or undefined for everything. Throws where the text is no round. */
export function parseRound(text: string | undefined): number | undefined {
  if (text === undefined || text === 'all') return undefined;
  const round = Number(text);
  if (!Number.isInteger(round) || round < 1 || round > ROUNDS)
    throw new Error(`ROUND must be all or 1 to ${ROUNDS}, not ${text}`);
  return round - 1;
}

/** The round of this run. */
export const ROUND = parseRound(process.env['ROUND']);

/** Whether the case at this place of `count` runs in the round. Where there are fewer cases than rounds, some run in several. */
export function isTurn(place: number, count: number, round = ROUND): boolean {
  if (round === undefined) return true;
  const turns = Math.min(count, ROUNDS);
  return place % turns === round % turns;
}

/** The cases of the round: at least one, and in all rounds together all of them. */
export function casesOfRound<T>(cases: readonly T[], round = ROUND): T[] {
  return cases.filter((_, place) => isTurn(place, cases.length, round));
}

/** How many of so many repetitions the round does. */
export function timesOfRound(times: number, round = ROUND): number {
  return round === undefined ? times : Math.ceil(times / ROUNDS);
}

/** A seed of its own for each round; the given one for everything. */
export function seedOfRound(seed: number, round = ROUND): number {
  return round === undefined ? seed : seed + round;
}
