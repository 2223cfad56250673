/** `rocev2 sim`: scenarios in virtual time, on the same NIC and switch code that runs on the wire. */

import { availableParallelism } from 'node:os';
import { type Command, Option } from 'commander';
import { formatRate } from '../../core/units.js';
import type { Ns3FlowFormat } from '../../sim/formats/ns3.js';
import type { ScenarioResult } from '../../sim/scenario/result.js';
import { parseScenario, type Scenario } from '../../sim/scenario/schema.js';
import { BUILT_IN_SCENARIOS } from '../../sim/scenarios/index.js';
import { CommandFailure, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE } from '../exit.js';
import { extensionOption } from '../extensions.js';
import { countOption } from '../options.js';
import { type CliIo, Output } from '../output.js';
import { checkWritable, writeOutputFile } from '../output-file.js';
import { figureLab } from '../sim/figures/figure.js';
import { FIGURE_COLUMNS, figureChart, figureResult, figureRow, listedFigure } from '../sim/figures/figure-report.js';
import { FIGURES, figureNamed } from '../sim/figures/index.js';
import { FrameCapture } from '../sim/frame-capture.js';
import { loadDocument, loadScenario } from '../sim/load.js';
import { scenarioChart, scenarioPage } from '../sim/page.js';
import { runOnCoresWatched, runWatched } from '../sim/run-watched.js';
import { SeriesFile } from '../sim/series-file.js';
import { StationTrace } from '../sim/station-trace.js';
import { sweepHere } from '../sim/sweep/local-executor.js';
import { type SweepResult, type SweepTask, sweepPoints } from '../sim/sweep/points.js';
import { sweepOnRedis } from '../sim/sweep/redis-executor.js';
import { DEFAULT_REDIS, withoutPassword } from '../sim/sweep/redis-queue.js';
import { workOnSweeps } from '../sim/sweep/redis-worker.js';
import {
  BUFFER_COLUMNS,
  bufferRow,
  FLOW_COLUMNS,
  flowRow,
  isTelling,
  QUEUE_COLUMNS,
  queueRow,
  SLOWDOWN_COLUMNS,
  SLOWDOWN_FLOWS_MIN,
  slowdownRow,
  summaryLines,
} from '../sim/tables.js';

interface SimOptions {
  readonly set?: readonly string[];
  readonly seed?: number;
  readonly json?: true;
}

interface RunOptions extends SimOptions {
  readonly report?: string;
  readonly plot?: string;
  readonly pcap?: string;
  readonly trace?: string;
  readonly series?: string;
  readonly at?: string;
  readonly topology?: string;
  readonly flows?: string;
  readonly flowFormat?: Ns3FlowFormat;
  readonly cores?: number;
}

interface SweepOptions extends SimOptions {
  readonly over?: readonly string[];
  readonly jobs: number;
  readonly executor: 'local' | 'redis';
  readonly redis?: string;
  readonly fresh?: true;
}

interface WorkerOptions {
  readonly redis?: string;
  readonly jobs: number;
}

const REDIS_HELP = `the server (default: the environment's ROCEV2_REDIS, else ${DEFAULT_REDIS})`;

/** Flows the table for people shows. */
const FLOWS_SHOWN = 24;

/** Adds `rocev2 sim` to `program`. */
export function register(program: Command, io: CliIo): void {
  const sim = program
    .command('sim')
    .description('Run scenarios in virtual time: the real NIC and switch code on links of any rate and length.')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 sim list
  rocev2 sim run dcqcn-n10-4us --report dcqcn.html
  rocev2 sim sweep dcqcn-n10-4us --over seed=1..4 --over nic.cc=none,dcqcn`,
    );
  sim
    .command('run')
    .description('Run one scenario. The exit code is 1 if one of its assertions fails.')
    .argument('<scenario>', "a name from 'rocev2 sim list', or a JSON file")
    .option('--set <path=value>', 'override a field; may be repeated', collect)
    .option('--seed <n>', 'seed of all random numbers', countOption)
    .option('--cores <n>', 'compute on so many cores; every number gives the same result', countOption)
    .option('--report <file>', 'write an HTML page with figures and tables')
    .option('--plot <file>', 'write queues, rates and signals as an SVG chart')
    .option('--topology <file>', "a topology file of HPCC's simulator or ns3-rdma in the place of the scenario's")
    .option('--flows <file>', "a file of flows of these in the place of the scenario's")
    .addOption(new Option('--flow-format <name>', 'who wrote it').choices(['hpcc', 'ns3-rdma']).default('hpcc'))
    .option('--pcap <file>', 'capture the frames on the cable of one host, as pcapng')
    .option('--trace <file>', 'write what the NIC of one host sends, receives and does, one JSON record a line')
    .option('--at <host>', "the host of --pcap and --trace (default: the last flow's receiver)")
    .option('--series <file>', 'write R_C, R_T, alpha and window of each flow, as CSV or .json')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 sim run dcqcn-n10-4us
  rocev2 sim run dcqcn-n10-4us --set nic.cc=none --report none.html
  rocev2 sim run livelock-go-back-0 --json | jq .summary.efficiency
  rocev2 sim run dcqcn-n2-4us --pcap h2.pcapng --at h2
  rocev2 sim run dcqcn-n16-4us --set payload=virtual
  rocev2 sim run fabric.json --cores 2
  rocev2 sim run dcqcn-n2-4us --trace h0.ndjson --at h0 --series rates.csv --set sample=10us
  rocev2 sim run fct-dcqcn --topology fat.txt --flows flow.txt
Fields of a scenario file: docs/lab.md.`,
    )
    .addOption(extensionOption())
    .action((name: string, options: RunOptions) => run(name, options, new Output(io, options.json === true)));
  sim
    .command('list')
    .description('List the built-in scenarios.')
    .option('--json', 'print the scenario files in one JSON document')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 sim list
  rocev2 sim list --json | jq '.scenarios[] | select(.name == "pfc-n2")' > mine.json      # a copy to start from`,
    )
    .action((options: { json?: true }) => list(new Output(io, options.json === true)));
  sim
    .command('figure')
    .description('Run what a published figure shows, and compare: published value, ours, difference, verdict.')
    .argument('[figure]', 'a name from --list')
    .option('--list', 'list the figures')
    .option('--plot <file>', 'write ours over the published values as an SVG chart')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
A value is inside if it is no more than 5 % away (fluid models) or 10 %
(packets). The verdict does not change the exit code. docs/figures.md has all.

Examples:
  rocev2 sim figure --list
  rocev2 sim figure conext16-4 --plot figure4.svg
  rocev2 sim figure ns3-pfc --json | jq '.figures[].values[] | select(.verdict == "outside")'`,
    )
    .action((name: string | undefined, options: FigureOptions) =>
      figure(name, options, new Output(io, options.json === true)),
    );
  sim
    .command('sweep')
    .description('Run a scenario with every combination of seeds and values, on all cores.')
    .argument('<scenario>', "a name from 'rocev2 sim list', or a JSON file")
    .option('--over <path=values>', 'an axis: seed=1..8 or nic.cc=none,dcqcn; may be repeated', collect)
    .option('--set <path=value>', 'override a field in all runs; may be repeated', collect)
    .option('--seed <n>', 'the seed of all runs', countOption)
    .option('--jobs <n>', 'runs in parallel on this machine', countOption, availableParallelism())
    .addOption(new Option('--executor <name>', 'who computes').choices(['local', 'redis']).default('local'))
    .option('--redis <url>', REDIS_HELP)
    .option('--fresh', 'with redis: run again what has a result there')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
With --executor redis the runs are computed by 'rocev2 sim worker' on any
machines; results stay in Redis for a week, and the same sweep takes them.

Examples:
  rocev2 sim sweep dcqcn-n10-4us --over seed=1..4
  rocev2 sim sweep dcqcn-n10-4us --over seed=1..400 --executor redis --redis redis://192.0.2.1:6379
  rocev2 sim sweep dcqcn-n10-4us --over topology.delay=1us,4us,16us --over nic.cc=none,dcqcn
  rocev2 sim sweep livelock-go-back-n --over nic.inflight=16,32,64 --json > sweep.json`,
    )
    .addOption(extensionOption())
    .action((name: string, options: SweepOptions) => sweep(name, options, new Output(io, options.json === true)));
  sim
    .command('worker')
    .description('Compute runs of sweeps that wait in a Redis server, until Ctrl-C.')
    .option('--redis <url>', REDIS_HELP)
    .option('--jobs <n>', 'runs at once', countOption, availableParallelism())
    .addHelpText(
      'after',
      `
Sweeps and workers need the same version of rocev2 and the same extensions,
and the packages bullmq and ioredis. A run whose worker dies is given to
another after 30 s.

Examples:
  rocev2 sim worker --redis redis://192.0.2.1:6379
  ROCEV2_REDIS=redis://:secret@192.0.2.1 rocev2 sim worker --jobs 4`,
    )
    .addOption(extensionOption())
    .action((options: WorkerOptions) => work(options, new Output(io, false)));
}

interface FigureOptions {
  readonly list?: true;
  readonly plot?: string;
  readonly json?: true;
}

async function figure(name: string | undefined, options: FigureOptions, output: Output): Promise<void> {
  if (options.list || name === undefined) {
    if (name !== undefined || !options.list || options.plot !== undefined) {
      throw new CommandFailure(EXIT_USAGE, "name a figure, or give --list alone: 'rocev2 sim figure --list'");
    }
    output.table(
      [
        { title: 'Figure', align: 'left' },
        { title: 'By', align: 'left' },
        { title: 'What it shows', align: 'left' },
      ],
      FIGURES.map(({ name, by, title }) => [name, by, title]),
    );
    output.document('sim-figure', { figures: FIGURES.map(listedFigure) });
    return;
  }
  const chosen = figureNamed(name);
  await checkWritable(options.plot);
  const run = await chosen.run(figureLab(output.io.interrupted));
  const result = figureResult(chosen, run);
  output.line(output.colors.bold(result.title));
  output.line(`${result.source}; inside: no more than ${100 * result.tolerance} % away`);
  output.line();
  output.table(FIGURE_COLUMNS, result.values.map(figureRow));
  if (result.note !== null) output.line(`\n${result.note}`);
  if (options.plot !== undefined) {
    await writeOutputFile(options.plot, figureChart(run));
    output.note(`wrote ${options.plot}`);
  }
  output.document('sim-figure', { figures: [result] });
}

function choiceOf(name: string, { set = [], seed, cores }: RunOptions): { name: string; set: string[] } {
  const given = Object.entries({ seed, cores }).flatMap(([field, value]) =>
    value === undefined ? [] : [`${field}=${value}`],
  );
  return { name, set: [...set, ...given] };
}

async function run(name: string, options: RunOptions, output: Output): Promise<void> {
  const choice = choiceOf(name, options);
  const { topology, flows, flowFormat } = options;
  const scenario = await loadScenario({
    ...choice,
    ...(topology !== undefined && { topology }),
    ...(flows !== undefined && { flows }),
    ...(flowFormat !== undefined && { flowFormat }),
  });
  for (const path of [options.report, options.plot, options.series]) await checkWritable(path);
  output.line(output.colors.bold(scenario.title === '' ? scenario.name : scenario.title));
  const result = await runCaptured(scenario, options, output);
  await writeFiles(
    result,
    scenario,
    ['rocev2 sim run', name, ...foreignFiles(options), ...choice.set.map((text) => `--set ${text}`)].join(' '),
    options,
    output,
  );
  print(result, output);
  output.document('sim-run', result);
  if (output.io.interrupted.aborted) throw new CommandFailure(EXIT_INTERRUPTED);
  if (result.assertions.some(({ ok }) => !ok)) throw new CommandFailure(EXIT_FAILED);
}

function foreignFiles({ topology, flows, flowFormat }: RunOptions): string[] {
  const flowFile = flows === undefined ? [] : [`--flows ${flows} --flow-format ${flowFormat}`];
  return [...(topology === undefined ? [] : [`--topology ${topology}`]), ...flowFile];
}

async function runCaptured(scenario: Scenario, options: RunOptions, output: Output): Promise<ScenarioResult> {
  const { pcap, trace: tracePath, series: seriesPath, at } = options;
  if (at !== undefined && pcap === undefined && tracePath === undefined) {
    throw new CommandFailure(EXIT_USAGE, '--at is the host of --pcap and --trace');
  }
  if ((scenario.cores ?? 1) > 1) {
    if (pcap !== undefined || tracePath !== undefined || seriesPath !== undefined) {
      throw new CommandFailure(EXIT_USAGE, '--pcap, --trace and --series need --cores 1, which gives the same run');
    }
    return await runOnCoresWatched(scenario, output);
  }
  const host = at ?? receiverOf(scenario);
  const capture = pcap === undefined ? undefined : await FrameCapture.create(pcap, host);
  const trace = tracePath === undefined ? undefined : await StationTrace.create(tracePath, host);
  const series = seriesPath === undefined ? undefined : new SeriesFile(seriesPath);
  try {
    return await runWatched(scenario, output, { capture, trace, series });
  } finally {
    await capture?.close();
    await trace?.close();
    if (capture !== undefined) {
      output.note(`wrote ${pcap}${capture.lost === 0 ? '' : `; ${capture.lost} frames found no room`}`);
    }
    if (trace !== undefined) output.note(`wrote ${tracePath}`);
    if (series !== undefined) {
      await writeOutputFile(seriesPath!, series.text());
      output.note(`wrote ${seriesPath}`);
    }
  }
}

/** Where the flows of the last entry go. */
function receiverOf({ flows }: Scenario): string {
  const last = flows[flows.length - 1];
  if (last.kind === 'list') return last.flows[last.flows.length - 1].to;
  const to = typeof last.to === 'string' ? last.to : last.to[0];
  return to.split('..')[0];
}

async function writeFiles(
  result: ScenarioResult,
  scenario: Scenario,
  command: string,
  options: RunOptions,
  output: Output,
): Promise<void> {
  if (options.report !== undefined) {
    await writeOutputFile(options.report, scenarioPage(result, command, scenario));
    output.note(`wrote ${options.report}`);
  }
  if (options.plot !== undefined) {
    await writeOutputFile(options.plot, scenarioChart(result));
    output.note(`wrote ${options.plot}`);
  }
}

function print(result: ScenarioResult, output: Output): void {
  if (output.json) return;
  for (const { label, text } of summaryLines(result)) output.line(`  ${label.padEnd(14)}${text}`);
  output.line();
  if (result.flows.length <= FLOWS_SHOWN) output.table(FLOW_COLUMNS, result.flows.map(flowRow));
  else output.line(`${result.flows.length} flows; --json and --report show each`);
  output.line();
  output.table(QUEUE_COLUMNS, result.queues.filter(isTelling).map(queueRow));
  if (result.buffers.length > 0) {
    output.line();
    output.table(BUFFER_COLUMNS, result.buffers.map(bufferRow));
  }
  if (result.flows.filter(({ completionNs }) => completionNs !== null).length >= SLOWDOWN_FLOWS_MIN) {
    output.line();
    output.table(SLOWDOWN_COLUMNS, result.slowdowns.map(slowdownRow));
  }
  if (result.assertions.length > 0) output.line();
  for (const { name, ok, detail } of result.assertions) {
    const mark = ok ? output.colors.green('ok    ') : output.colors.red('FAILED');
    output.line(`${mark}  ${name}: ${detail}`);
  }
}

function list(output: Output): void {
  output.table(
    [
      { title: 'Scenario', align: 'left' },
      { title: 'What it shows', align: 'left' },
    ],
    BUILT_IN_SCENARIOS.map(({ name, title }) => [name, title ?? '']),
  );
  output.document('sim-list', { scenarios: BUILT_IN_SCENARIOS });
}

async function sweep(name: string, options: SweepOptions, output: Output): Promise<void> {
  const axes = options.over ?? [];
  const wrong = axes.find((axis) => !/^[\w.[\]-]+=./.test(axis));
  if (axes.length === 0 || wrong !== undefined) {
    throw new CommandFailure(EXIT_USAGE, `--over ${wrong ?? 'is missing'}: write, for example, --over seed=1..8`);
  }
  const url = redisOf(options, output);
  if (options.executor === 'local' && (options.redis !== undefined || options.fresh)) {
    throw new CommandFailure(EXIT_USAGE, '--redis and --fresh belong to --executor redis');
  }
  const { set } = choiceOf(name, options);
  const tasks: SweepTask[] = [];
  for (const point of sweepPoints(axes)) {
    const document = await loadDocument({ name, set: [...set, ...point] });
    parseScenario(document); // Mistakes show before hours have passed.
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
      ...axes.map((axis) => ({ title: axis.split('=')[0], align: 'left' as const })),
      { title: 'Goodput', align: 'right' },
      { title: 'Jain', align: 'right' },
      { title: 'Queue mean KB', align: 'right' },
      { title: 'p99 KB', align: 'right' },
      { title: 'CNPs', align: 'right' },
      { title: 'Pauses', align: 'right' },
      { title: 'Dropped', align: 'right' },
      { title: 'Assertions', align: 'left' },
      { title: 'Trace', align: 'left' },
    ],
    results.map(sweepRow),
  );
  output.document('sim-sweep', { runs: results });
  if (output.io.interrupted.aborted) throw new CommandFailure(EXIT_INTERRUPTED, 'interrupted: some runs are missing');
  if (results.some(({ result }) => result.assertions.some(({ ok }) => !ok))) throw new CommandFailure(EXIT_FAILED);
}

async function work(options: WorkerOptions, output: Output): Promise<void> {
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

function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}
