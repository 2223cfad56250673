import {
  CommandFailure,
  defineDocument,
  EXIT_FAILED,
  EXIT_USAGE,
  leftAligned,
  type Output,
  rightAligned,
} from '@rocev2/command';
import { formatRate } from 'rocev2/internal/core';
import type { Original } from '../../../sim/scenario/like.js';
import { parseScenario } from '../../../sim/scenario/schema.js';
import { loadDocument } from '../load.js';
import { sweepHere } from './local-executor.js';
import { type SweepResult, type SweepTask, sweepPoints } from './points.js';
import { sweepOnRedis } from './redis-executor.js';
import { DEFAULT_REDIS, withoutPassword } from './redis-queue.js';
import { workOnSweeps } from './redis-worker.js';

/** The fields of `sim sweep --json`. */
interface SweepResults {
  /** The results, in the order of the points. */
  readonly runs: readonly SweepResult[];
}

const SIM_SWEEP_DOCUMENT = defineDocument<SweepResults>('sim-sweep');

export interface SweepOptions {
  readonly set?: readonly string[];
  readonly like?: Original;
  readonly seed?: number;
  readonly over?: readonly string[];
  readonly jobs: number;
  readonly executor: 'local' | 'redis';
  readonly redis?: string;
  readonly fresh?: true;
}

export interface WorkerOptions {
  readonly redis?: string;
  readonly jobs: number;
}

export async function sweepCommand(name: string, options: SweepOptions, output: Output): Promise<void> {
  const axes = options.over ?? [];
  const wrong = axes.find((axis) => !/^[\w.[\]-]+=./.test(axis));
  if (axes.length === 0 || wrong !== undefined) {
    throw new CommandFailure(EXIT_USAGE, `--over ${wrong ?? 'is missing'}: write, for example, --over seed=1..8`);
  }
  const url = redisOf(options, output);
  if (options.executor === 'local' && (options.redis !== undefined || options.fresh)) {
    throw new CommandFailure(EXIT_USAGE, '--redis and --fresh belong to --executor redis');
  }
  const { set = [], seed, like } = options;
  const forAll = [...set, ...(seed === undefined ? [] : [`seed=${seed}`])];
  const tasks: SweepTask[] = [];
  for (const point of sweepPoints(axes)) {
    const document = await loadDocument({
      name,
      set: [...forAll, ...point],
      ...(like !== undefined && { like }),
    });
    parseScenario(document);
    tasks.push({ point, document });
  }
  const isLocal = options.executor === 'local';
  output.note(
    `${tasks.length} runs, ${isLocal ? `${options.jobs} at a time` : `by the workers of ${withoutPassword(url)}`}`,
  );
  const progress = output.progress(tasks.length);
  const control = {
    signal: output.io.interrupted,
    onDone: (done: number) => progress.update(done, `${done} of ${tasks.length} runs`),
  };
  const sweeping = isLocal
    ? sweepHere(tasks, { ...control, jobs: options.jobs })
    : sweepOnRedis(tasks, { ...control, url, fresh: options.fresh === true, say: (text) => output.note(text) });
  const results = await sweeping.finally(() => progress.stop());
  output.table(
    [
      ...leftAligned(...axes.map((axis) => axis.split('=')[0])),
      ...rightAligned('Goodput', 'Jain', 'Queue mean KB', 'p99 KB', 'CNPs', 'Pauses', 'Dropped'),
      ...leftAligned('Assertions', 'Trace'),
    ],
    results.map(sweepRow),
  );
  output.document(SIM_SWEEP_DOCUMENT, { runs: results });
  output.throwIfInterrupted('interrupted: some runs are missing');
  if (results.some(({ result }) => result.assertions.some(({ ok }) => !ok))) throw new CommandFailure(EXIT_FAILED);
}

export async function workCommand(options: WorkerOptions, output: Output): Promise<void> {
  const url = redisOf(options, output);
  await workOnSweeps({
    url,
    jobs: options.jobs,
    signal: output.io.interrupted,
    onReady: (queue) => output.line(`ready for ${options.jobs} runs at once of ${queue} at ${withoutPassword(url)}`),
    onRun: (name, seed) => output.line(`${name}, seed ${seed}`),
    onFailure: (problem) => output.line(`FAILED: ${problem}`),
  });
}

function redisOf({ redis }: { readonly redis?: string }, { io }: Output): string {
  return redis ?? (io.env.ROCEV2_REDIS || DEFAULT_REDIS);
}

function sweepRow({ point, result }: SweepResult): (string | number)[] {
  const { summary, assertions, traceHash } = result;
  const failed = assertions.filter(({ ok }) => !ok).length;
  return [
    ...point.map((text) => text.slice(text.indexOf('=') + 1)),
    formatRate(summary.goodputBps),
    summary.jain.toFixed(4),
    (summary.queueMeanBytes / 1000).toFixed(1),
    (summary.queueP99Bytes / 1000).toFixed(1),
    summary.cnps,
    summary.pauseFrames,
    summary.droppedPackets,
    failed === 0 ? 'ok' : `${failed} failed`,
    traceHash,
  ];
}
