/**
 * The parameters of DCQCN that explain the rate of one direction after its CNPs best: the reaction point of this project is run over the CNPs of the capture
 * for many parameters, and its rate compared with what was sent (least squares of logarithms, capped, on a grid that is made finer).
 *
 * Fitted are g, the rate timer T, and R_AI. Taken for granted are the other settings of SIGCOMM'15: alpha begins at 1 and ages with the same timer, five
 * stages of fast recovery, no byte counter, no hyper increase. The line rate is the fastest that was sent before the first CNP. The sender must always have had something
 * to send.
 */

import { completeParameters } from 'rocev2/internal/core';
import { REACTION_POINT_TABLE, ReactionPoint } from 'rocev2/internal/dcqcn';
import type { RateRecord } from './rate-watch.js';

/** Fewer do not tell: a cut and one recovery fit many parameters. */
export const FITTED_CNPS_MIN = 20;
/** Bins of packets, for the same reason. */
const FITTED_BINS_MIN = 100;
/** A bin that differs by more than a factor e says that the sender had nothing to send. */
const SQUARE_MAX = 1;
/** The mean error of a fit that means something. */
const ERROR_MAX = 0.15;

/** What was fitted. */
export interface DcqcnFit {
  /** g. */
  readonly gain: number;
  /** T. */
  readonly rateTimerNs: number;
  /** R_AI. */
  readonly additiveIncreaseBps: number;
  /** Root of the mean square of ln(sent / model). */
  readonly error: number;
}

interface Candidate {
  readonly gain: number;
  readonly rateTimerNs: number;
  /** As a share of the line rate. */
  readonly increase: number;
}

interface Fitted {
  readonly candidate: Candidate;
  /** Mean of the squares. */
  readonly square: number;
}

/** Points of the grid from which it is made finer. */
const STARTS = 5;
const GAINS = [1 / 8, 1 / 64, 1 / 512];
/** 10 us to 3 ms: the rate goes up in steps, so that a timer which is far from right fits as badly as any other. */
const TIMERS_NS = Array.from({ length: 32 }, (_, i) => 10e3 * 1.2 ** i);
const INCREASES = [3e-4, 3e-3, 3e-2];
const ROUGH = [1.6, 1.2];
const FINE = [1.2, 1.1, 1.05, 1.02, 1.01, 1.003];

/** Undefined where the record is too short, or nothing fits. */
export function fitDcqcn(record: RateRecord): DcqcnFit | undefined {
  if (record.cnpNs.length < FITTED_CNPS_MIN || record.endNs.length < FITTED_BINS_MIN) return undefined;
  if (record.rateBefore <= 0) return undefined;
  const squareOf = (candidate: Candidate) => meanSquare(candidate, record);
  // Of each timer the best; one start alone may lead to a place that is the best of its surroundings only.
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

/** How the three parameters may move together: up, down, or not at all. */
const MOVES: ReadonlyArray<readonly [number, number, number]> = [-1, 0, 1].flatMap((gain) =>
  [-1, 0, 1].flatMap((timer) => [-1, 0, 1].map((increase): [number, number, number] => [gain, timer, increase])),
);

/** Moves the parameters by ever smaller factors, as long as that helps. */
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
