/** The runs of a sweep: every combination of seeds and parameter values. */

import { RoceError } from 'rocev2/internal/core';
import { parsedValue } from '../../../sim/scenario/overrides.js';
import type { ScenarioResult } from '../../../sim/scenario/result.js';

/** The value of each axis in one run, by path, the seed included. */
export type SweepPoint = Readonly<Record<string, unknown>>;

/** Every combination of the values of the axes, each `path=value,value`; the last axis varies fastest. */
export function sweepPoints(axes: readonly string[]): SweepPoint[] {
  let points: SweepPoint[] = [{}];
  for (const axis of axes) {
    const split = axis.indexOf('=');
    const path = axis.slice(0, split);
    const values = valuesOf(axis.slice(split + 1));
    if (Object.hasOwn(points[0], path)) {
      throw new RoceError('ERR_ROCE_CONFLICT', `two axes change ${path}`, 'write all of its values in one axis');
    }
    points = points.flatMap((point) => values.map((value) => ({ ...point, [path]: value })));
  }
  return points;
}

/** The overrides `path=value` that make the run of a point. */
export function overridesOf(point: SweepPoint): string[] {
  return Object.entries(point).map(([path, value]) => `${path}=${textOf(value)}`);
}

/** A value as it is written on the command line. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function valuesOf(text: string): unknown[] {
  const range = /^(\d+)\.\.(\d+)$/.exec(text);
  if (range === null) return valuesIn(text).map(parsedValue);
  const [first, last] = [Number(range[1]), Number(range[2])];
  if (last < first) throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `${text} is an empty range`, 'write it as 1..4');
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

/** Commas inside JSON objects, lists and texts do not separate values. */
function valuesIn(text: string): string[] {
  const values = [''];
  let depth = 0;
  let isText = false;
  for (const [i, character] of [...text].entries()) {
    if (character === '"' && text[i - 1] !== '\\') isText = !isText;
    if (!isText && '{['.includes(character)) depth++;
    if (!isText && '}]'.includes(character)) depth--;
    if (character === ',' && depth === 0 && !isText) values.push('');
    else values[values.length - 1] += character;
  }
  return values;
}

export interface SweepTask {
  readonly point: SweepPoint;
  readonly document: unknown;
}

/** One run of a sweep. */
export interface SweepResult {
  /** The value of each axis, by its path. */
  readonly point: SweepPoint;
  /** The result of the run. */
  readonly result: ScenarioResult;
}

export interface SweepControl {
  readonly signal: AbortSignal;
  readonly onDone: (done: number) => void;
}
