import {
  CommandFailure,
  checkWritable,
  defineDocument,
  EXIT_FAILED,
  EXIT_USAGE,
  type Output,
  writeOutputFile,
} from '@rocev2/command';
import type { Ns3FlowFormat } from '../../sim/formats/ns3.js';
import type { Original } from '../../sim/scenario/like.js';
import type { ScenarioResult } from '../../sim/scenario/result.js';
import type { Scenario } from '../../sim/scenario/schema.js';
import { FrameCapture } from './frame-capture.js';
import { loadScenario } from './load.js';
import { scenarioChart, scenarioPage } from './page.js';
import { runOnCoresWatched, runWatched } from './run-watched.js';
import { SeriesFile } from './series-file.js';
import { StationTrace } from './station-trace.js';
import { printResult } from './tables.js';

const SIM_RUN_DOCUMENT = defineDocument<ScenarioResult>('sim-run');

export interface RunCommandOptions {
  readonly set?: readonly string[];
  readonly like?: Original;
  readonly seed?: number;
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

export async function runCommand(name: string, options: RunCommandOptions, output: Output): Promise<void> {
  const set = overridesOf(options);
  const { topology, flows, flowFormat, like } = options;
  const scenario = await loadScenario({
    name,
    set,
    ...(topology !== undefined && { topology }),
    ...(flows !== undefined && { flows }),
    ...(flowFormat !== undefined && { flowFormat }),
    ...(like !== undefined && { like }),
  });
  for (const path of [options.report, options.plot, options.series]) await checkWritable(path);
  output.line(output.colors.bold(scenario.title === '' ? scenario.name : scenario.title));
  const result = await runCaptured(scenario, options, output);
  await writeFiles(
    result,
    scenario,
    ['rocev2 sim run', name, ...sourceOptions(options), ...set.map((text) => `--set ${text}`)].join(' '),
    options,
    output,
  );
  if (!output.json) printResult(result, output);
  output.document(SIM_RUN_DOCUMENT, result);
  output.throwIfInterrupted();
  if (result.assertions.some(({ ok }) => !ok)) throw new CommandFailure(EXIT_FAILED);
}

function overridesOf({ set = [], seed, cores }: RunCommandOptions): string[] {
  const given = Object.entries({ seed, cores }).flatMap(([field, value]) =>
    value === undefined ? [] : [`${field}=${value}`],
  );
  return [...set, ...given];
}

function sourceOptions({ topology, flows, flowFormat, like }: RunCommandOptions): string[] {
  const flowFile = flows === undefined ? [] : [`--flows ${flows} --flow-format ${flowFormat}`];
  return [
    ...(topology === undefined ? [] : [`--topology ${topology}`]),
    ...flowFile,
    ...(like === undefined ? [] : [`--like ${like}`]),
  ];
}

async function runCaptured(scenario: Scenario, options: RunCommandOptions, output: Output): Promise<ScenarioResult> {
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
  options: RunCommandOptions,
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
