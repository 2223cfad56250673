/** Runs a sweep on whichever machines have workers: its runs are jobs in a queue, and their results stay there. */

import type { Job, Queue, QueueEvents } from 'bullmq';
import type { ScenarioResult } from '../../../sim/scenario/result.js';
import { CommandFailure, EXIT_FAILED } from '../../exit.js';
import type { SweepControl, SweepResult, SweepTask } from './points.js';
import { connectRedis, type QueuedRun, queueLibrary, queueName, runId } from './redis-queue.js';

/** Results are kept for a week. */
const KEEP_RESULTS_S = 7 * 24 * 3600;
/** How often all runs are looked at, in case the news of one was lost. */
const LOOK_MS = 2_000;
/** Runs that are added, or asked for, at once. */
const BATCH = 500;

/** What a sweep on a queue tells about itself. */
export interface RedisSweepOptions extends SweepControl {
  /** URL of the Redis server. */
  readonly url: string;
  /** Run again what has a result. */
  readonly fresh: boolean;
  /** Says something to the person who waits: that results were there already, that no worker is. */
  readonly say: (text: string) => void;
}

/**
 * The results, in the order of the tasks; after `signal`, only those of completed runs, and the runs that nobody has begun are withdrawn. If this process dies, the
 * workers go on, and the next call with the same tasks takes their results. Throws a CommandFailure for the first run that fails, and withdraws the others.
 */
export async function sweepOnRedis(
  tasks: readonly SweepTask[],
  { url, fresh, say, signal, onDone }: RedisSweepOptions,
): Promise<SweepResult[]> {
  const { bullmq } = await queueLibrary();
  const connection = await connectRedis(url);
  const name = queueName();
  const queue: Queue<QueuedRun, ScenarioResult> = new bullmq.Queue(name, { connection });
  const events = new bullmq.QueueEvents(name, { connection: connection.duplicate() });
  queue.on('error', waitForServer);
  events.on('error', waitForServer);
  try {
    const waiting = new Map(tasks.map((task) => [runId(task.document), task]));
    const results = new Map<string, ScenarioResult>();
    await forget(queue, [...waiting.keys()], fresh);
    await add(queue, waiting);
    const collect = async () => {
      const lost = new Map(waiting);
      for (const job of await jobsOf(queue, [...waiting.keys()])) {
        lost.delete(job.id!);
        if (job.finishedOn === undefined) continue;
        if (job.failedReason) throw failure(waiting.get(job.id!)!, job.failedReason);
        results.set(job.id!, job.returnvalue);
        waiting.delete(job.id!);
      }
      await add(queue, lost); // Another sweep has withdrawn what both waited for.
      onDone(results.size);
    };
    await collect();
    if (results.size > 0) say(`${results.size} results are there from an earlier sweep (--fresh runs them again)`);
    if (waiting.size > 0 && (await queue.getWorkersCount()) === 0) {
      say(`no worker has come: start them with 'rocev2 sim worker --redis URL' on any machine with this version`);
    }
    try {
      while (waiting.size > 0 && !signal.aborted) {
        await nextNews(events, signal);
        await collect();
      }
    } finally {
      await withdraw(queue, [...waiting.keys()]);
    }
    return tasks.flatMap(({ point, document }) => {
      const result = results.get(runId(document));
      return result === undefined ? [] : [{ point, result }];
    });
  } finally {
    await Promise.allSettled([events.close(), queue.close()]);
    connection.disconnect();
  }
}

/** Removes the runs that have failed before, and with `fresh` those that have a result. */
async function forget(queue: Queue, ids: readonly string[], fresh: boolean): Promise<void> {
  for (const job of await jobsOf(queue, ids)) {
    if (job.finishedOn !== undefined && (fresh || job.failedReason)) await job.remove();
  }
}

/** Adds the runs that are not there. */
async function add(queue: Queue<QueuedRun>, tasks: ReadonlyMap<string, SweepTask>): Promise<void> {
  const all = [...tasks].map(([jobId, { document }]) => ({
    name: 'run',
    data: { document },
    opts: { jobId, removeOnComplete: { age: KEEP_RESULTS_S }, removeOnFail: { age: KEEP_RESULTS_S } },
  }));
  for (let at = 0; at < all.length; at += BATCH) await queue.addBulk(all.slice(at, at + BATCH));
}

/** The jobs with these names that are in the queue. */
async function jobsOf<Data, Result>(queue: Queue<Data, Result>, ids: readonly string[]): Promise<Job<Data, Result>[]> {
  const found: Job<Data, Result>[] = [];
  for (let at = 0; at < ids.length; at += BATCH) {
    const jobs = await Promise.all(ids.slice(at, at + BATCH).map((id) => queue.getJob(id)));
    for (const job of jobs) if (job !== undefined) found.push(job as Job<Data, Result>);
  }
  return found;
}

/** Removes the runs that no worker has begun. What is under way ends, and its result is kept. */
async function withdraw(queue: Queue, ids: readonly string[]): Promise<void> {
  for (const job of await jobsOf(queue, ids)) {
    if (await job.isWaiting()) await job.remove().catch(() => {}); // A worker was quicker.
  }
}

/** Resolves when a run has ended somewhere, after a while, or after the signal. */
async function nextNews(events: QueueEvents, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(done, LOOK_MS);
    function done(): void {
      clearTimeout(timer);
      events.off('completed', done).off('failed', done);
      signal.removeEventListener('abort', done);
      resolve();
    }
    events.on('completed', done).on('failed', done);
    signal.addEventListener('abort', done, { once: true });
  });
}

function waitForServer(): void {}

function failure({ point }: SweepTask, reason: string): CommandFailure {
  return new CommandFailure(EXIT_FAILED, `the run with ${point.join(' ')} failed: ${reason}`);
}
