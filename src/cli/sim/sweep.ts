/**
 * Many runs of one scenario in parallel: every combination of seeds and parameter values, one worker thread per run, up to a given number of threads.
 */

import { Worker } from 'node:worker_threads';
import PQueue from 'p-queue';
import { RoceError } from '../../core/errors.js';
import { loadedExtensions } from '../../driver/extensions.js';
import type { ScenarioResult } from '../../sim/scenario/result.js';
import type { ScenarioChoice } from './load.js';
import type { SweepRun } from './sweep-worker.js';

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

/** One run of a sweep. */
export interface SweepResult {
  /** `path=value` for each axis. */
  readonly point: SweepPoint;
  /** The result of the run. */
  readonly result: ScenarioResult;
}

/**
 * The results, in the order of the points; after `signal`, only those of completed runs. Rejects with the first failure, which ends the other runs.
 */
export async function runSweep(
  base: ScenarioChoice,
  points: readonly SweepPoint[],
  options: { jobs: number; signal: AbortSignal; onDone: (done: number) => void },
): Promise<SweepResult[]> {
  const queue = new PQueue({ concurrency: options.jobs });
  const over = new AbortController();
  const stop = AbortSignal.any([options.signal, over.signal]);
  let done = 0;
  const runOne = async (point: SweepPoint): Promise<SweepResult | undefined> => {
    if (stop.aborted) return undefined;
    const result = await runInWorker({ name: base.name, set: [...base.set, ...point] }, stop);
    if (result === undefined) return undefined;
    options.onDone(++done);
    return { point, result };
  };
  try {
    const results = await Promise.all(points.map((point) => queue.add(() => runOne(point))));
    return results.filter((result) => result !== undefined);
  } finally {
    over.abort();
  }
}

/** The result of one run; undefined if the signal came first. */
function runInWorker(choice: ScenarioChoice, signal: AbortSignal): Promise<ScenarioResult | undefined> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./sweep-worker.js', import.meta.url), {
      workerData: { choice, extensions: loadedExtensions() } satisfies SweepRun,
    });
    const stop = () => {
      resolve(undefined);
      void worker.terminate();
    };
    signal.addEventListener('abort', stop, { once: true });
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) => {
      signal.removeEventListener('abort', stop);
      reject(new Error(`a run ended with code ${code}`)); // Without effect if there was a result.
    });
  });
}
