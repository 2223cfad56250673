import type { Job } from 'bullmq';
import type { ScenarioResult } from '../../../sim/scenario/result.js';
import { connectRedis, type QueuedRun, queueLibrary, queueName } from './redis-queue.js';
import { runInThread } from './run-in-thread.js';

/** A run whose worker has been silent for this time is given to another. */
const LOCK_MS = 30_000;
const DEATHS_MAX = 5;

export interface SweepWorkerOptions {
  readonly url: string;
  readonly jobs: number;
  readonly signal: AbortSignal;
  readonly onReady: (queue: string) => void;
  readonly onRun: (name: string, seed: number) => void;
  readonly onFailure: (problem: string) => void;
  readonly lockMs?: number;
}

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
  worker.on('error', () => {});
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
