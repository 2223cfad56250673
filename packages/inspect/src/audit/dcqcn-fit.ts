/**
 * Fits DCQCN's g, rate timer T and R_AI to the rate of one direction after its CNPs: the reaction point runs over the
 * captured CNPs for many parameters, compared by least squares of logarithms on a refined grid. Other settings are
 * those of SIGCOMM'15: alpha begins at 1 and ages with the same timer, five stages of fast recovery, no byte counter,
 * no hyper increase. The line rate is the fastest before the first CNP; the sender must always have had data.
 */

import { completeParameters } from 'rocev2/internal/core';
import { REACTION_POINT_TABLE, ReactionPoint } from 'rocev2/internal/dcqcn';
import type { RateRecord } from './rate-watch.js';

/** Fewer do not tell: a cut and one recovery fit many parameters. */
export const FITTED_CNPS_MIN = 20;
const FITTED_BINS_MIN = 100;
const SQUARE_MAX = 1;
const ERROR_MAX = 0.15;

export interface DcqcnFit {
  readonly gain: number;
  readonly rateTimerNs: number;
  readonly additiveIncreaseBps: number;
  readonly error: number;
}

interface Candidate {
  readonly gain: number;
  readonly rateTimerNs: number;
  readonly increase: number;
}

interface Fitted {
  readonly candidate: Candidate;
  readonly square: number;
}

const STARTS = 5;
const GAINS = [1 / 8, 1 / 64, 1 / 512];
/** 10 us to 3 ms: the rate goes up in steps, so that a timer which is far from right fits as badly as any other. */
const TIMERS_NS = Array.from({ length: 32 }, (_, i) => 10e3 * 1.2 ** i);
const INCREASES = [3e-4, 3e-3, 3e-2];
const ROUGH = [1.6, 1.2];
const FINE = [1.2, 1.1, 1.05, 1.02, 1.01, 1.003];

export function fitDcqcn(record: RateRecord): DcqcnFit | undefined {
  if (record.cnpNs.length < FITTED_CNPS_MIN || record.endNs.length < FITTED_BINS_MIN) return undefined;
  if (record.rateBefore <= 0) return undefined;
  const squareOf = (candidate: Candidate) => meanSquare(candidate, record);
  // The best start of each timer; one start alone may end in a local minimum.
  const starts = TIMERS_NS.map((rateTimerNs) => {
    const candidates = GAINS.flatMap((gain) => INCREASES.map((increase) => ({ gain, rateTimerNs, increase })));
    return least(candidates.map((candidate) => ({ candidate, square: squareOf(candidate) })));
  }).sort((one, other) => one.square - other.square);
  const rough = least(starts.slice(0, STARTS).map((start) => refine(start, ROUGH, squareOf)));
  const { candidate, square } = refine(rough, FINE, squareOf);
  const error = Math.sqrt(square);
  if (error > ERROR_MAX) return undefined;
  const { gain, rateTimerNs, increase } = candidate;
  return { gain, rateTimerNs, additiveIncreaseBps: increase * record.rateBefore, error };
}

function least(fits: readonly Fitted[]): Fitted {
  return fits.reduce((best, one) => (one.square < best.square ? one : best));
}

const MOVES: ReadonlyArray<readonly [number, number, number]> = [-1, 0, 1].flatMap((gain) =>
  [-1, 0, 1].flatMap((timer) => [-1, 0, 1].map((increase): [number, number, number] => [gain, timer, increase])),
);

function refine(start: Fitted, factors: readonly number[], squareOf: (candidate: Candidate) => number): Fitted {
  let best = start;
  for (const factor of factors) {
    for (let isBetter = true; isBetter; ) {
      isBetter = false;
      const { gain, rateTimerNs, increase } = best.candidate;
      for (const [gainMove, timerMove, increaseMove] of MOVES) {
        const candidate = {
          gain: Math.min(1, gain * factor ** gainMove),
          rateTimerNs: rateTimerNs * factor ** timerMove,
          increase: increase * factor ** increaseMove,
        };
        const square = squareOf(candidate);
        if (square >= best.square) continue;
        best = { candidate, square };
        isBetter = true;
      }
    }
  }
  return best;
}

function meanSquare({ gain, rateTimerNs, increase }: Candidate, record: RateRecord): number {
  const { endNs, spanNs, bytes, cnpNs, rateBefore } = record;
  const point = new ReactionPoint(
    completeParameters('DCQCN', REACTION_POINT_TABLE, {
      linkRateBps: rateBefore,
      minimumRateBps: rateBefore / 1e4,
      gain,
      alphaIntervalNs: rateTimerNs,
      rateTimerNs,
      additiveIncreaseBps: increase * rateBefore,
      byteCounterBytes: 0,
    }),
  );
  let next = 0;
  let sum = 0;
  for (let bin = 0; bin < endNs.length; bin++) {
    const middleNs = endNs[bin] - spanNs[bin] / 2;
    for (; next < cnpNs.length && cnpNs[next] <= middleNs; next++) point.onCnp(cnpNs[next]);
    const sent = (bytes[bin] * 8e9) / spanNs[bin];
    const difference = Math.log(sent / point.rateBps(middleNs));
    sum += Math.min(SQUARE_MAX, difference * difference);
  }
  return sum / endNs.length;
}
