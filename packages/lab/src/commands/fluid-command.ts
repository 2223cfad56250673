/** `rocev2 fluid`: the fluid models of DCQCN and TIMELY: fixed point, stability, and how queue and rates move. */

import { setImmediate } from 'node:timers/promises';
import {
  alternatives,
  type CliIo,
  checkWritable,
  choiceOption,
  countOption,
  defineDocument,
  durationOption,
  type Output,
  printing,
  rateOption,
  writeOutputFile,
} from '@rocev2/command';
import { type Command, Option } from 'commander';
import {
  formatNs,
  namesHint,
  parseDurationNs,
  parseRateBps,
  parseSizeBytes,
  RoceError,
  SeededRandom,
} from 'rocev2/internal/core';
import {
  DCQCN_LONG_RAMP,
  DCQCN_PI,
  DCQCN_SIGCOMM15,
  dcqcnStudy,
  type FlowGroup,
  type FluidRun,
  type FluidStudy,
  type JitterParameters,
  PATCHED_TIMELY_CONEXT16,
  PATCHED_TIMELY_PI_CONEXT16,
  patchedTimelyStudy,
  publishedHostPi,
  simulate,
  TIMELY_SIGCOMM15,
  timelyStudy,
  togetherAtStart,
} from '../fluid/index.js';
import { collect } from './collect.js';
import {
  type FluidResult,
  fluidChart,
  fluidDocument,
  fluidHeadline,
  fluidTheory,
  SWING_COLUMNS,
  swingRow,
} from './fluid-report.js';

const FLUID_DOCUMENT = defineDocument<FluidResult>('fluid');

const MODELS = ['dcqcn', 'timely', 'patched-timely'] as const;
type ModelName = (typeof MODELS)[number];

const DCQCN_PRESETS = { 'long-ramp': DCQCN_LONG_RAMP, sigcomm15: DCQCN_SIGCOMM15 } as const;
type DcqcnPreset = keyof typeof DCQCN_PRESETS;

const TABLE_DELAYS_NS = [4_000, 25_000, 50_000, 85_000, 100_000];
const TRACE_SAMPLES = 2000;
const JITTER_PERIOD_NS = 50_000;
const MAX_FLOWS = 10_000;
const MAX_DELAY_NS = 10_000_000;
const MAX_DURATION_NS = 60e9;

interface FluidOptions {
  readonly flows?: number;
  readonly delay: number;
  readonly rate?: number;
  readonly preset?: DcqcnPreset;
  readonly pi?: true | 'switch' | 'host';
  readonly set?: readonly string[];
  readonly rates?: readonly number[];
  readonly starts?: readonly number[];
  readonly marking?: 'egress' | 'enqueue';
  readonly jitter?: number;
  readonly seed: number;
  readonly duration?: number;
  readonly plot?: string;
}

/** Adds `rocev2 fluid` to `program`. */
export function register(program: Command, io: CliIo): void {
  program
    .command('fluid')
    .description(
      'Evaluate fluid models of congestion control: fixed point, phase margin, critical delay, swing of queue and rates.',
    )
    .argument('<model>', alternatives(MODELS), choiceOption(MODELS))
    .option('--flows <n>', 'number of flows that share the link (default: 2)', countOption)
    .addOption(
      new Option('--delay <time>', 'feedback delay; TIMELY: the propagation delay in it')
        .argParser(durationOption)
        .default(4000, '4us'),
    )
    .option('--rate <rate>', 'capacity of the link (default: 40Gbps for DCQCN, 10Gbps for TIMELY)', rateOption)
    .option(
      '--preset <name>',
      `DCQCN parameters: ${alternatives(Object.keys(DCQCN_PRESETS))} (default: long-ramp)`,
      choiceOption(Object.keys(DCQCN_PRESETS) as DcqcnPreset[]),
    )
    .option(
      '--pi [where]',
      'PI control instead of RED or gradient: at the switch (DCQCN), at the host or switch (patched TIMELY)',
      choiceOption(['switch', 'host']),
    )
    .option('--set <name=value>', 'override a parameter; may be repeated', collect)
    .option('--rates <list>', 'initial rate of each flow: 7Gbps,3Gbps', listOf(rateOption))
    .option('--starts <list>', 'start of each flow: 0ms,10ms', listOf(durationOption))
    .option('--marking <where>', 'DCQCN: mark at egress or at enqueue', choiceOption(['egress', 'enqueue']))
    .option('--jitter <time>', 'add a random delay up to this value to the feedback', durationOption)
    .option('--seed <n>', 'seed of the jitter', countOption, 1)
    .option('--duration <time>', 'model time to integrate; the figures are from its last third', durationOption)
    .option('--plot <file>', 'write queue and rates as an SVG chart')
    .option('--json', 'print one JSON document')
    .addHelpText('after', helpText())
    .action(printing(io, fluid));
}

function wrapped(words: readonly string[], indent: string): string {
  const lines: string[] = [];
  for (const word of words) {
    const line = lines.at(-1);
    if (line !== undefined && `${line}, ${word},`.length <= 80) lines[lines.length - 1] = `${line}, ${word}`;
    else lines.push(`${indent}${word}`);
  }
  return lines.join(',\n');
}

function helpText(): string {
  const names = (set: object): string => wrapped(Object.keys(set), '    ');
  return `
Presets: long-ramp is the time-domain set of "ECN or Delay" (CoNEXT'16), RED 5
to 2000 KB up to 10 %; sigcomm15 the defaults of DCQCN (SIGCOMM'15), RED 5 to
200 KB up to 1 %, to which the published phase margins belong. The exact margin
linearises the model itself; the authors' is the published linearisation.

Names for --set (values of ...Ns, ...Bps and ...Bytes take units):
  dcqcn
${names(DCQCN_SIGCOMM15)}
  dcqcn --pi
${names(DCQCN_PI)}
  timely
${names(TIMELY_SIGCOMM15)}
  patched-timely
    those of timely, and weightSlope
  patched-timely --pi
${names(publishedHostPi(TIMELY_SIGCOMM15))}

--json prints {model, flows, delayNs, fixedPoint, phaseMarginDegrees:{authors,
exact}, criticalDelayNs, trace:{timeNs, queueBytes, rateBps}}, rateBps with one
series per flow; null means that the value does not exist.

Examples:
  rocev2 fluid dcqcn --flows 10 --delay 85us --plot dcqcn.svg
  rocev2 fluid dcqcn --flows 10 --preset sigcomm15 --set additiveIncreaseBps=10Mbps
  rocev2 fluid timely --rates 7Gbps,3Gbps
  rocev2 fluid patched-timely --pi host --rates 7Gbps,3Gbps --json`;
}

async function fluid(name: ModelName, options: FluidOptions, output: Output): Promise<void> {
  checkOptions(name, options);
  await checkWritable(options.plot);
  const study = studyOf(name, options);
  const runs = await simulateAll(study, options, output);
  const run = runs.get(options.delay)!;
  if (options.plot !== undefined) {
    await writeOutputFile(options.plot, fluidChart(study, options.delay, run.trace));
    output.note(`wrote ${options.plot}`);
  }
  output.document(FLUID_DOCUMENT, fluidDocument(study, options.delay, run.trace));
  if (!output.json) print(study, options, runs, output);
}

function checkOptions(name: ModelName, options: FluidOptions): void {
  const refuse = (message: string): never => {
    throw new RoceError('ERR_ROCE_CONFLICT', message);
  };
  const tooLong = (message: string): never => {
    throw new RoceError('ERR_ROCE_OUT_OF_RANGE', message);
  };
  if (name !== 'dcqcn' && options.preset !== undefined) refuse('--preset is only for dcqcn');
  if (name !== 'dcqcn' && options.marking !== undefined) refuse('--marking is only for dcqcn: TIMELY uses no marks');
  if (name === 'timely' && options.pi !== undefined) refuse('--pi is only for dcqcn and patched-timely');
  if (name === 'dcqcn' && options.pi === 'host') refuse('DCQCN has its PI controller at the switch: give --pi switch');
  if (options.delay > MAX_DELAY_NS) tooLong(`--delay is at most ${formatNs(MAX_DELAY_NS)}`);
  if ((options.duration ?? 0) > MAX_DURATION_NS) tooLong(`--duration is at most ${formatNs(MAX_DURATION_NS)}`);
}

function groupsOf({ flows, rates, starts }: FluidOptions): FlowGroup[] {
  const counts = [flows, rates?.length, starts?.length].filter((count) => count !== undefined);
  if (new Set(counts).size > 1) {
    throw new RoceError('ERR_ROCE_CONFLICT', `--flows, --rates and --starts disagree: ${counts.join(', ')} flows`);
  }
  const count = counts[0] ?? 2;
  if (count > MAX_FLOWS) throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `there can be at most ${MAX_FLOWS} flows`);
  if (rates === undefined && starts === undefined) return togetherAtStart(count);
  return Array.from({ length: count }, (_, i) => ({
    count: 1,
    startNs: starts?.[i] ?? 0,
    ...(rates && { initialRateBps: rates[i] }),
  }));
}

function studyOf(name: ModelName, options: FluidOptions): FluidStudy {
  const settings = new Settings(options.set);
  const common = {
    groups: groupsOf(options),
    delayNs: options.delay,
    ...(options.jitter !== undefined && { jitter: jitterOf(options.jitter, options.seed) }),
  };
  const link = options.rate === undefined ? {} : { linkRateBps: options.rate };
  switch (name) {
    case 'dcqcn': {
      const parameters = settings.applyTo({ ...DCQCN_PRESETS[options.preset ?? 'long-ramp'], ...link });
      const pi = options.pi && settings.applyTo(DCQCN_PI);
      settings.refuseUnknown();
      return dcqcnStudy({
        ...common,
        parameters,
        ...(pi && { pi }),
        ...(options.marking && { marking: options.marking }),
      });
    }
    case 'timely': {
      const parameters = settings.applyTo({ ...TIMELY_SIGCOMM15, ...link });
      settings.refuseUnknown();
      return timelyStudy({ ...common, parameters });
    }
    case 'patched-timely': {
      const preset = options.pi ? PATCHED_TIMELY_PI_CONEXT16 : PATCHED_TIMELY_CONEXT16;
      const parameters = settings.applyTo({ ...preset, ...link });
      const gains = options.pi && settings.applyTo(publishedHostPi(parameters));
      settings.refuseUnknown();
      const scope = options.pi === 'switch' ? 'shared' : 'per-flow';
      return patchedTimelyStudy({ ...common, parameters, ...(gains && { pi: { gains, scope } }) });
    }
  }
}

function jitterOf(maxNs: number, seed: number): () => JitterParameters {
  return () => ({ maxNs, periodNs: JITTER_PERIOD_NS, random: new SeededRandom(seed).stream('feedback-jitter') });
}

class Settings {
  readonly #texts: ReadonlyMap<string, string>;
  readonly #known = new Set<string>();

  constructor(texts: readonly string[] = []) {
    this.#texts = new Map(texts.map((text) => [text.split('=', 1)[0], text.slice(text.indexOf('=') + 1)]));
  }

  applyTo<T extends object>(parameters: T): T {
    const changes: Record<string, number> = {};
    for (const name of Object.keys(parameters)) {
      this.#known.add(name);
      const text = this.#texts.get(name);
      if (text !== undefined) changes[name] = settingValue(name, text);
    }
    return { ...parameters, ...changes };
  }

  refuseUnknown(): void {
    for (const name of this.#texts.keys()) {
      if (this.#known.has(name)) continue;
      const hint = namesHint(name, [...this.#known], 'there are');
      throw new RoceError('ERR_ROCE_UNKNOWN_NAME', `--set: there is no parameter '${name}'`, hint);
    }
  }
}

function settingValue(name: string, text: string): number {
  if (name.endsWith('Ns')) return parseDurationNs(text);
  if (name.endsWith('Bps')) return parseRateBps(text);
  if (name.endsWith('Bytes')) return parseSizeBytes(text);
  const value = text === '' ? Number.NaN : Number(text);
  if (Number.isNaN(value)) throw new RoceError('ERR_ROCE_MALFORMED', `'${text}' is not a number for ${name}`);
  return value;
}

function listOf(parse: (text: string) => number): (text: string) => number[] {
  return (text) => text.split(',').map((item) => parse(item));
}

function simulateAt(study: FluidStudy, options: FluidOptions, delayNs: number): FluidRun {
  const model = study.modelAt(delayNs);
  return options.duration === undefined
    ? simulate(model, { durationNs: study.durationNs, observeNs: study.observeNs, traceSamples: TRACE_SAMPLES })
    : simulate(model, { durationNs: options.duration, traceSamples: TRACE_SAMPLES });
}

async function simulateAll(
  study: FluidStudy,
  options: FluidOptions,
  output: Output,
): Promise<ReadonlyMap<number, FluidRun>> {
  const shown = output.json ? [] : TABLE_DELAYS_NS;
  const delays = [...new Set([...shown, options.delay])].sort((x, y) => x - y);
  const progress = output.progress(delays.length);
  const runs = new Map<number, FluidRun>();
  try {
    for (const delay of delays) {
      progress.update(runs.size, `feedback delay ${formatNs(delay)}`);
      await setImmediate();
      output.throwIfInterrupted();
      runs.set(delay, simulateAt(study, options, delay));
    }
  } finally {
    progress.stop();
  }
  return runs;
}

function print(study: FluidStudy, options: FluidOptions, runs: ReadonlyMap<number, FluidRun>, output: Output): void {
  output.line(output.colors.bold(fluidHeadline(study, options.delay)));
  output.line();
  for (const { label, text } of fluidTheory(study)) output.line(`  ${label.padEnd(22)}${text}`);
  output.line();
  const durationNs = options.duration ?? study.durationNs;
  const observedNs = options.duration === undefined ? study.observeNs : options.duration / 3;
  output.line(`Integrated in time for ${formatNs(durationNs)}; over the last ${formatNs(observedNs)}:`);
  output.line();
  output.table(
    SWING_COLUMNS,
    [...runs].map(([delay, run]) => swingRow(delay === options.delay, delay, run)),
  );
}
