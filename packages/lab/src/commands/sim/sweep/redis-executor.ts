/** Runs a sweep on any machines that have workers: runs are jobs in a Redis queue, where their results stay. */

import { CommandFailure, EXIT_FAILED } from '@rocev2/command';
import type { Job, Queue, QueueEvents } from 'bullmq';
import type { ScenarioResult } from '../../../sim/scenario/result.js';
import { overridesOf, type SweepControl, type SweepResult, type SweepTask } from './points.js';
import { connectRedis, type QueuedRun, queueLibrary, queueName, runId } from './redis-queue.js';

const KEEP_RESULTS_S = 7 * 24 * 3600;
const LOOK_MS = 2_000;
const BATCH = 500;

export interface RedisSweepOptions extends SweepControl {
  readonly url: string;
  readonly fresh: boolean;
  readonly say: (text: string) => void;
}

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
    const asked = tasks.map(({ point, document }) => ({ id: runId(document), point, document }));
    const waiting = new Map(asked.map((task) => [task.id, task]));
    const results = new Map<string, ScenarioResult>();
    await forget(queue, [...waiting.keys()], fresh);
    await add(queue, waiting);
    const collect = async (ids: Iterable<string>) => {
      const lost = new Map([...ids].flatMap((id) => (waiting.has(id) ? [[id, waiting.get(id)!] as const] : [])));
      for (const job of await jobsOf(queue, [...lost.keys()])) {
        lost.delete(job.id!);
        if (job.finishedOn === undefined) continue;
        if (job.failedReason) throw failure(waiting.get(job.id!)!, job.failedReason);
        results.set(job.id!, job.returnvalue);
        waiting.delete(job.id!);
      }
      await add(queue, lost);
      onDone(results.size);
    };
    await collect([...waiting.keys()]);
    if (results.size > 0) say(`${results.size} results are there from an earlier sweep (--fresh runs them again)`);
    if (waiting.size > 0 && (await queue.getWorkersCount()) === 0) {
      say(`no worker has come: start them with 'rocev2 sim worker --redis URL' on any machine with this version`);
    }
    const news = new News(events, signal, (id) => waiting.has(id));
    try {
      while (waiting.size > 0 && !signal.aborted) await collect((await news.next()) ?? [...waiting.keys()]);
    } finally {
      news.close();
      await withdraw(queue, [...waiting.keys()]);
    }
    return asked.flatMap(({ id, point }) => {
      const result = results.get(id);
      return result === undefined ? [] : [{ point, result }];
    });
  } finally {
    await Promise.allSettled([events.close(), queue.close()]);
    connection.disconnect();
  }
}

async function forget(queue: Queue, ids: readonly string[], fresh: boolean): Promise<void> {
  for (const job of await jobsOf(queue, ids)) {
    if (job.finishedOn !== undefined && (fresh || job.failedReason)) await job.remove();
  }
}

async function add(queue: Queue<QueuedRun>, tasks: ReadonlyMap<string, SweepTask>): Promise<void> {
  const all = [...tasks].map(([jobId, { document }]) => ({
    name: 'run',
    data: { document },
    opts: { jobId, removeOnComplete: { age: KEEP_RESULTS_S }, removeOnFail: { age: KEEP_RESULTS_S } },
  }));
  for (let at = 0; at < all.length; at += BATCH) await queue.addBulk(all.slice(at, at + BATCH));
}

async function jobsOf<Data, Result>(queue: Queue<Data, Result>, ids: readonly string[]): Promise<Job<Data, Result>[]> {
  const found: Job<Data, Result>[] = [];
  for (let at = 0; at < ids.length; at += BATCH) {
    const jobs = await Promise.all(ids.slice(at, at + BATCH).map((id) => queue.getJob(id)));
    for (const job of jobs) if (job !== undefined) found.push(job as Job<Data, Result>);
  }
  return found;
}

async function withdraw(queue: Queue, ids: readonly string[]): Promise<void> {
  for (const job of await jobsOf(queue, ids)) {
    if (await job.isWaiting()) await job.remove().catch(() => {});
  }
}

class News {
  readonly #events: QueueEvents;
  readonly #signal: AbortSignal;
  readonly #isWaited: (id: string) => boolean;
  #ended: string[] = [];
  #wake: () => void = () => {};

  constructor(events: QueueEvents, signal: AbortSignal, isWaited: (id: string) => boolean) {
    this.#events = events;
    this.#signal = signal;
    this.#isWaited = isWaited;
    events.on('completed', this.#onEnd).on('failed', this.#onEnd);
  }

  readonly #onEnd = ({ jobId }: { readonly jobId: string }): void => {
    if (!this.#isWaited(jobId)) return;
    this.#ended.push(jobId);
    this.#wake();
  };

  async next(): Promise<readonly string[] | undefined> {
    if (this.#ended.length === 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, LOOK_MS);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
        this.#signal.addEventListener('abort', this.#wake, { once: true });
      });
      this.#signal.removeEventListener('abort', this.#wake);
    }
    const ended = this.#ended;
    this.#ended = [];
    return ended.length === 0 && !this.#signal.aborted ? undefined : ended;
  }

  close(): void {
    this.#events.off('completed', this.#onEnd).off('failed', this.#onEnd);
  }
}

function waitForServer(): void {}

function failure({ point }: SweepTask, reason: string): CommandFailure {
  return new CommandFailure(EXIT_FAILED, `the run with ${overridesOf(point).join(' ')} failed: ${reason}`);
}
