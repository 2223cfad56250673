import {
  type Column,
  CommandFailure,
  defineDocument,
  EXIT_FAILED,
  EXIT_USAGE,
  leftAligned,
  type Output,
} from '@rocev2/command';
import { formatNs, formatRate } from 'rocev2/internal/core';
import type { Original } from '../../../sim/scenario/like.js';
import type { ScenarioResult } from '../../../sim/scenario/result.js';
import { parseScenario } from '../../../sim/scenario/schema.js';
import { loadDocument } from '../load.js';
import { sweepHere } from './local-executor.js';
import {
  bySeed,
  type Estimate,
  estimate,
  isUnaffectedBySeed,
  MEASURE_NAMES,
  type MeasuredRun,
  measuredRun,
  type SweepMeasureName,
} from './measures.js';
import { overridesOf, type SweepPoint, type SweepResult, type SweepTask, sweepPoints, textOf } from './points.js';
import { sweepOnRedis } from './redis-executor.js';
import { DEFAULT_REDIS, withoutPassword } from './redis-queue.js';
import { workOnSweeps } from './redis-worker.js';
import { checkSweepOutputs, type SweepOutputOptions } from './sweep-options.js';
import { writeSweepOutputs } from './sweep-outputs.js';

/** The runs of a point with several seeds. */
interface SweepGroup {
  /** The value of each axis but the seed, by its path. */
  readonly point: SweepPoint;
  /** Seeds. */
  readonly runs: number;
  /** Means and confidence intervals, by the columns of --csv; null where all seeds gave the same run. */
  readonly estimates: Readonly<Record<string, Estimate>> | null;
}

/** The fields of `sim sweep --json`. */
interface SweepResults {
  /** The results, in the order of the points. */
  readonly runs: readonly SweepResult[];
  /** Means over the seeds, in the order of the points. */
  readonly groups: readonly SweepGroup[];
}

/** Start times of flows in sweeps over seeds, unless the scenario or --set has them. */
const JITTER = 'jitter=10us';

const SIM_SWEEP_DOCUMENT = defineDocument<SweepResults>('sim-sweep');

export interface SweepOptions extends SweepOutputOptions {
  readonly set?: readonly string[];
  readonly like?: Original;
  readonly seed?: number;
  readonly jobs: number;
  readonly executor: 'local' | 'redis';
  readonly redis?: string;
  readonly fresh?: true;
  /** False for --no-assert. */
  readonly assert: boolean;
}

export interface WorkerOptions {
  readonly redis?: string;
  readonly jobs: number;
}

export async function sweepCommand(name: string, options: SweepOptions, output: Output): Promise<void> {
  const axes = options.over ?? [];
  if (axes.length === 0) {
    throw new CommandFailure(EXIT_USAGE, '--over is missing: write, for example, --over seed=1..8');
  }
  const url = redisOf(options, output);
  if (options.executor === 'local' && (options.redis !== undefined || options.fresh)) {
    throw new CommandFailure(EXIT_USAGE, '--redis and --fresh belong to --executor redis');
  }
  const { set = [], seed, like } = options;
  await checkSweepOutputs(options);
  if (options.plot !== undefined && axes.every((axis) => axis.startsWith('seed='))) {
    throw new CommandFailure(EXIT_USAGE, '--plot needs an axis besides the seed, for x');
  }
  const points = sweepPoints(axes);
  const own = await loadDocument({ name, set });
  const hasSeeds = points.some((point) => point['seed'] !== points[0]['seed']);
  const isJittered = hasSeeds && !Object.hasOwn(own as object, 'jitter');
  if (isJittered)
    output.note(`flows start up to 10 us late, at random by the seed (${JITTER}; --set jitter=0: at once)`);
  const forAll = [...(isJittered ? [JITTER] : []), ...set, ...(seed === undefined ? [] : [`seed=${seed}`])];
  const tasks: SweepTask[] = [];
  for (const point of points) {
    const document = await loadDocument({
      name,
      set: [...forAll, ...overridesOf(point)],
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
  const columns = COLUMNS.filter(
    ({ isShown }) => isShown === undefined || results.some(({ result }) => isShown(result)),
  );
  output.table(
    [...leftAligned(...axes.map((axis) => axis.split('=')[0])), ...columns],
    results.map(({ point, result }) => [
      ...Object.values(point).map(textOf),
      ...columns.map(({ value }) => value(result)),
    ]),
  );
  const measured = results.map(measuredRun);
  const chart = { title: results[0]?.result.title || name, measures: measuresOf(results) };
  await writeSweepOutputs(options, measured, chart, output);
  output.document(SIM_SWEEP_DOCUMENT, { runs: results, groups: groupsOf(measured) });
  output.throwIfInterrupted('interrupted: some runs are missing');
  if (options.assert && results.some(({ result }) => result.assertions.some(({ ok }) => !ok)))
    throw new CommandFailure(EXIT_FAILED);
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

function groupsOf(runs: readonly MeasuredRun[]): SweepGroup[] {
  return bySeed(runs).map((group) => ({
    point: group.point,
    runs: group.runs.length,
    estimates: isUnaffectedBySeed(group)
      ? null
      : Object.fromEntries(
          MEASURE_NAMES.map((name) => [name, estimate(name, group)] as const).filter(
            ([, { mean }]) => !Number.isNaN(mean),
          ),
        ),
  }));
}

/** What a plot shows by default: completion times where flows end, otherwise goodput and queue. */
function measuresOf(results: readonly SweepResult[]): readonly SweepMeasureName[] {
  const hasEnds = results.some(({ result }) => hasCompletions(result));
  return hasEnds ? ['completionP50Ns', 'completionP99Ns'] : ['goodputBps', 'queueP99Bytes'];
}

function hasCompletions({ summary }: ScenarioResult): boolean {
  return summary.completions.count + summary.completions.unfinished > 0;
}

interface SweepColumn extends Column {
  readonly value: (result: ScenarioResult) => string | number;
  /** Left out: always. */
  readonly isShown?: (result: ScenarioResult) => boolean;
}

function column(
  title: string,
  value: SweepColumn['value'],
  isShown?: SweepColumn['isShown'],
  align: Column['align'] = 'right',
): SweepColumn {
  return { title, align, value, ...(isShown !== undefined && { isShown }) };
}

const percent = (share: number) => `${(share * 100).toFixed(2)} %`;
const kilobytes = (bytes: number) => (bytes / 1000).toFixed(1);
const duration = (ns: number | null) => (ns === null ? '' : formatNs(ns));

const COLUMNS: readonly SweepColumn[] = [
  column('Goodput', ({ summary }) => formatRate(summary.goodputBps)),
  column('Efficiency', ({ summary }) => percent(summary.efficiency)),
  column(
    'In theory',
    ({ summary: { theoreticalEfficiency } }) => (theoreticalEfficiency === null ? '' : percent(theoreticalEfficiency)),
    ({ summary }) => summary.theoreticalEfficiency !== null,
  ),
  column('Jain', ({ summary }) => summary.jain.toFixed(4)),
  column('Queue mean KB', ({ summary }) => kilobytes(summary.queueMeanBytes)),
  column('p99 KB', ({ summary }) => kilobytes(summary.queueP99Bytes)),
  column('FCT p50', ({ summary }) => duration(summary.completions.p50Ns), hasCompletions),
  column('p99', ({ summary }) => duration(summary.completions.p99Ns), hasCompletions),
  column('CNPs', ({ summary }) => summary.cnps),
  column('Pauses', ({ summary }) => summary.pauseFrames),
  column('Dropped', ({ summary }) => summary.droppedPackets),
  column('Resent', ({ summary }) => summary.retransmittedPackets),
  column('Failed', ({ summary }) => summary.failedFlows),
  column('Assertions', assertionText, ({ assertions }) => assertions.length > 0, 'left'),
  column('Trace', ({ traceHash }) => traceHash, undefined, 'left'),
];

function assertionText({ assertions }: ScenarioResult): string {
  const failed = assertions.filter(({ ok }) => !ok).length;
  return failed === 0 ? 'ok' : `${failed} failed`;
}
