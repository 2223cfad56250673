/** The runs of a sweep: every combination of seeds and parameter values. */

import { RoceError } from 'rocev2/internal/core';
import type { ScenarioResult } from '../../../sim/scenario/result.js';

/** One run of a sweep: its overrides, seed included. */
export type SweepPoint = readonly string[];

export function sweepPoints(axes: readonly string[]): SweepPoint[] {
  let points: SweepPoint[] = [[]];
  for (const axis of axes) {
    const split = axis.indexOf('=');
    const path = axis.slice(0, split);
    const values = valuesOf(axis.slice(split + 1));
    points = points.flatMap((point) => values.map((value) => [...point, `${path}=${value}`]));
  }
  return points;
}

function valuesOf(text: string): string[] {
  const range = /^(\d+)\.\.(\d+)$/.exec(text);
  if (range === null) return text.split(',');
  const [first, last] = [Number(range[1]), Number(range[2])];
  if (last < first) throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `${text} is an empty range`, 'write it as 1..4');
  return Array.from({ length: last - first + 1 }, (_, i) => String(first + i));
}

export interface SweepTask {
  readonly point: SweepPoint;
  readonly document: unknown;
}

/** One run of a sweep. */
export interface SweepResult {
  /** `path=value` for each axis. */
  readonly point: SweepPoint;
  /** The result of the run. */
  readonly result: ScenarioResult;
}

export interface SweepControl {
  readonly signal: AbortSignal;
  readonly onDone: (done: number) => void;
}
