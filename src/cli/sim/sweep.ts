/** Many runs of one scenario at once: every combination of seeds and parameter values, one run a worker thread, as many threads as asked. */

import { Worker } from 'node:worker_threads';
import PQueue from 'p-queue';
import { RoceError } from '../../core/errors.js';
import type { ScenarioResult } from '../../sim/scenario/result.js';
import type { ScenarioChoice } from './load.js';

/** One run of a sweep: its overrides, seed included. */
export type SweepPoint = readonly string[];

/** `nic.cc=none,dcqcn` and `seed=1..4` as all their combinations, the last one varying fastest. Throws for a range that is empty. */
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

/** `1..4` is 1, 2, 3, 4; otherwise a list with commas. */
function valuesOf(text: string): string[] {
  const range = /^(\d+)\.\.(\d+)$/.exec(text);
  if (range === null) return text.split(',');
  const [first, last] = [Number(range[1]), Number(range[2])];
  if (last < first) throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', `${text} is an empty range`, 'write 1..4');
  return Array.from({ length: last - first + 1 }, (_, i) => String(first + i));
}

export interface SweepResult {
  readonly point: SweepPoint;
  readonly result: ScenarioResult;
}

/** Results in the order of the points; without those that `signal` kept from ending. Rejects with the first failure. */
export async function runSweep(
  base: ScenarioChoice,
  points: readonly SweepPoint[],
  options: { jobs: number; signal: AbortSignal; onDone: (done: number) => void },
): Promise<SweepResult[]> {
  const queue = new PQueue({ concurrency: options.jobs });
  const workers = new Set<Worker>();
  const stop = () => {
    for (const worker of workers) void worker.terminate();
  };
  options.signal.addEventListener('abort', stop, { once: true });
  let done = 0;
  const run = async (point: SweepPoint): Promise<SweepResult[]> => {
    if (options.signal.aborted) return [];
    try {
      const result = await runInWorker({ name: base.name, set: [...base.set, ...point] }, workers);
      options.onDone(++done);
      return [{ point, result }];
    } catch (error) {
      if (options.signal.aborted) return [];
      throw error;
    }
  };
  try {
    return (await Promise.all(points.map((point) => queue.add(() => run(point))))).flat();
  } finally {
    options.signal.removeEventListener('abort', stop);
  }
}

function runInWorker(choice: ScenarioChoice, workers: Set<Worker>): Promise<ScenarioResult> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./sweep-worker.js', import.meta.url), { workerData: choice });
    workers.add(worker);
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) => {
      workers.delete(worker);
      reject(new Error(`a run ended with code ${code}`)); // Too late if there was a result.
    });
  });
}
