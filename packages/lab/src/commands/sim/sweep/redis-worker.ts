/** A worker of sweeps: takes runs from the queue and computes them in threads of this process. */

import type { Job } from 'bullmq';
import type { ScenarioResult } from '../../../sim/scenario/result.js';
import { connectRedis, type QueuedRun, queueLibrary, queueName } from './redis-queue.js';
import { runInThread } from './run-in-thread.js';

/** A run whose worker has not been heard of for this time is given to another. */
const LOCK_MS = 30_000;
/** A run that has cost so many workers their life is to blame itself. */
const DEATHS_MAX = 5;

/** How a worker works, and what it tells. */
export interface SweepWorkerOptions {
  /** URL of the Redis server. */
  readonly url: string;
  /** Runs at once. */
  readonly jobs: number;
  /** Aborted: give the runs that are under way back, and end. */
  readonly signal: AbortSignal;
  /** Called when runs can come. */
  readonly onReady: (queue: string) => void;
  /** Called at the end of a run with its scenario's name and its seed. */
  readonly onRun: (name: string, seed: number) => void;
  /** Called at the end of a run that has failed. */
  readonly onFailure: (problem: string) => void;
  /** Replaces 30 s, ms. */
  readonly lockMs?: number;
}

/** Resolves after the signal. Rejects with ERR_ROCE_CONNECT if there is no server, ERR_ROCE_UNSUPPORTED without the packages. */
export async function workOnSweeps(options: SweepWorkerOptions): Promise<void> {
  const { bullmq } = await queueLibrary();
  const connection = await connectRedis(options.url);
  const lockMs = options.lockMs ?? LOCK_MS;
  const run = async (job: Job<QueuedRun, ScenarioResult>, token?: string): Promise<ScenarioResult> => {
    const result = await runInThread(job.data.document, options.signal);
    if (result !== undefined) return result;
    await job.moveToWait(token);
    throw new bullmq.WaitingError();
  };
  const worker = new bullmq.Worker<QueuedRun, ScenarioResult>(queueName(), run, {
    connection,
    concurrency: options.jobs,
    lockDuration: lockMs,
    stalledInterval: lockMs,
    maxStalledCount: DEATHS_MAX,
  });
  worker.on('error', () => {}); // A server that has gone is waited for.
  worker.on('completed', (_, { scenario, seed }) => options.onRun(scenario, seed));
  worker.on('failed', (_, { message }) => options.onFailure(message));
  await worker.waitUntilReady();
  options.onReady(worker.name);
  await new Promise<void>((resolve) => {
    if (options.signal.aborted) resolve();
    else options.signal.addEventListener('abort', () => resolve(), { once: true });
  });
  await worker.close();
  connection.disconnect();
}
