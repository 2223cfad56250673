/** The runs of a sweep: every combination of seeds and parameter values. */

import { RoceError } from 'rocev2/internal/core';
import type { ScenarioResult } from '../../../sim/scenario/result.js';

/** One run of a sweep: its overrides, seed included. */
export type SweepPoint = readonly string[];

/** All combinations of axes such as `nic.cc=none,dcqcn` and `seed=1..4`; the last axis varies fastest. Throws for an empty range. */
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

/** The values of an axis: `1..4` is 1, 2, 3, 4; any other text is a comma-separated list. */
function valuesOf(text: string): string[] {
  const range = /^(\d+)\.\.(\d+)$/.exec(text);
  if (range === null) return text.split(',');
  const [first, last] = [Number(range[1]), Number(range[2])];
  if (last < first) throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `${text} is an empty range`, 'write it as 1..4');
  return Array.from({ length: last - first + 1 }, (_, i) => String(first + i));
}

/** A point, and the scenario that it stands for. */
export interface SweepTask {
  /** `path=value` for each axis. */
  readonly point: SweepPoint;
  /** A scenario file with the overrides in it, as JSON can have it. */
  readonly document: unknown;
}

/** One run of a sweep. */
export interface SweepResult {
  /** `path=value` for each axis. */
  readonly point: SweepPoint;
  /** The result of the run. */
  readonly result: ScenarioResult;
}

/** How a sweep is run. */
export interface SweepControl {
  /** Aborted: return what is done. */
  readonly signal: AbortSignal;
  /** Called after each run with the number of those that are done. */
  readonly onDone: (done: number) => void;
}
