/** `rocev2 livelock`: go-back-0 against go-back-N and selective repeat, with one packet in 256 lost. */

import {
  addAliasedOption,
  addExtensionOption,
  addFaultsOption,
  type CliIo,
  CommandFailure,
  choiceOption,
  defineDocument,
  durationOption,
  EXIT_FAILED,
  EXIT_INTERRUPTED,
  EXIT_USAGE,
  EXIT_VERIFICATION_FAILED,
  listOption,
  messageSizeOption,
  mtuOption,
  type Output,
  printing,
  textOption,
} from '@rocev2/command';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { formatBytes, namesHint, parseCount } from 'rocev2/internal/core';
import { parseFaultRules } from 'rocev2/internal/faults';
import type { PathMtu } from 'rocev2/internal/packet';
import { type RecoveryName, recoveryNamesByWaste, senderTraits } from 'rocev2/internal/retransmit';
import { collect } from './collect.js';
import { measuredLivelock } from './livelock/measured-run.js';
import { LIVELOCK_OPS, type LivelockOp } from './livelock/ops.js';
import { type Comparison, compareSchemes, type LivelockRun } from './livelock/scheme-comparison.js';
import { printRuns } from './livelock/table.js';
import type { MeasuredRun } from './sim/sweep/measures.js';
import { type SweepPoint, sweepPoints, textOf } from './sim/sweep/points.js';
import { addSweepOutputOptions, checkSweepOutputs, type SweepOutputOptions } from './sim/sweep/sweep-options.js';
import { writeSweepOutputs } from './sim/sweep/sweep-outputs.js';

/** The fields of `livelock --json`. */
interface LivelockResult {
  /** The runs, in the order in which they were made. */
  readonly runs: readonly LivelockRun[];
  /** Packets per second of the lossless references. */
  readonly references: Comparison['references'];
}

const LIVELOCK_DOCUMENT = defineDocument<LivelockResult>('livelock');

/** The rule of the paper: IP identifications are sequential, so it takes exactly one packet in 256. */
export const PAPER_RULE = 'ip-id-lsb=0xff';
/** Message size of the published experiment. */
export const PAPER_MESSAGE_BYTES = 4 * 1024 * 1024;
/** Path MTU of the published experiment. */
export const PAPER_MTU = 1024;
/**
 * Deep enough to fill a pipeline, and far from 255, where every retransmission of go-back-N would meet the next drop.
 */
export const DEFAULT_WINDOW_PACKETS = 64;

/** What all runs of a point have in common. */
interface PointOptions {
  readonly message: number;
  readonly mtu: PathMtu;
  readonly faults: string;
  readonly window: number;
  readonly seed: number;
}

/** The axes of --over, by the names of the options, whose values they take. */
const AXES: { readonly [Name in keyof PointOptions]: (text: string) => PointOptions[Name] } = {
  faults: faultsOf,
  message: messageOption,
  mtu: mtuOption,
  window: windowOf,
  seed: (text) => parseCount(text),
};

interface LivelockOptions extends PointOptions, SweepOutputOptions {
  readonly ops: readonly LivelockOp[];
  readonly schemes: readonly RecoveryName[];
  readonly duration: number;
  readonly trace?: string;
}

/** Adds `rocev2 livelock` to `program`. */
export function register(program: Command, io: CliIo): void {
  const schemes = recoveryNamesByWaste();
  // Schemes that retransmit only what is missing lose the same here, so one of each kind is enough.
  const kinds = schemes.map((name) => `${senderTraits(name).goesBack} ${senderTraits(name).restartsMessages}`);
  const compared = schemes.filter((_name, i) => kinds.indexOf(kinds[i]) === i);
  const command = addExtensionOption(program.command('livelock'));
  command
    .description(
      "Run the livelock experiment of 'RDMA over Commodity Ethernet at Scale' (SIGCOMM 2016) with two endpoint processes and a " +
        'switch process on loopback. A sends messages to B; the switch drops one packet in 256; go-back-0 keeps the link ' +
        'busy and delivers nothing.',
    )
    .addOption(
      new Option('--ops <list>', 'operations')
        .argParser(listOption(choiceOption(LIVELOCK_OPS)))
        .default(LIVELOCK_OPS, 'send,write,read'),
    )
    .addOption(
      new Option('--schemes <list>', 'recovery schemes')
        .argParser(listOption(choiceOption(schemes)))
        .default(compared, compared.join()),
    )
    .addOption(
      new Option('--message <size>', 'message size').argParser(messageOption).default(PAPER_MESSAGE_BYTES, '4MiB'),
    )
    .option('--mtu <bytes>', 'path MTU', mtuOption, PAPER_MTU);
  addFaultsOption(command, 'fault rules of the switch, whose ports are a and b; none: no loss', ['--drop'], (option) =>
    option.argParser(textOption(faultsOf)).default(PAPER_RULE),
  );
  addAliasedOption(
    command,
    new Option('-D, --duration <time>', 'duration of each run').argParser(secondsOption).default(2, '2s'),
    ['--seconds'],
  )
    .option('--window <packets>', 'packets in flight', textOption(windowOf), DEFAULT_WINDOW_PACKETS)
    .option('--seed <n>', 'seed for random fault rules', (text) => parseCount(text), 1)
    .option(
      '--trace <file>',
      'trace endpoint A in every run, as JSON lines; the run is added to this file name (docs/events.md)',
    )
    .option('--over <option=values>', 'an axis: faults, message, mtu, window or seed; may be repeated', collect);
  addSweepOutputOptions(command)
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 livelock                                    # all operations and schemes, about 30 s
  rocev2 livelock --faults none                      # without loss: go-back-0 works
  rocev2 livelock --ops write --faults 'a>b:random=0.001'
  rocev2 livelock --window 200 --schemes go-back-n   # a deep pipeline makes go-back-N wasteful
  rocev2 livelock --ops write --over faults=random=0.001,random=0.01 --over seed=1..3 --plot loss.svg --y efficiency`,
    )
    .action(printing(io, livelock));
}

async function livelock(options: LivelockOptions, output: Output): Promise<void> {
  const { ops, schemes, duration: seconds, trace } = options;
  await checkSweepOutputs(options);
  const points = sweepPoints(options.over ?? []);
  const settings = points.map((point) => atPoint(options, point));
  if (trace !== undefined && points.length > 1) {
    throw new CommandFailure(
      EXIT_USAGE,
      '--trace cannot be combined with --over: every point would write the same file',
    );
  }
  const runs: LivelockRun[] = [];
  const references: Array<Comparison['references'][number]> = [];
  const measured: MeasuredRun[] = [];
  let isComplete = true;
  for (const [i, { message, mtu, faults, window, seed }] of settings.entries()) {
    const packets = Math.ceil(message / mtu);
    output.line(
      `Messages of ${formatBytes(message)} from A to B in ${packets} packets of ${mtu} bytes; the switch drops:`,
    );
    output.line(`${faults}. Each run takes ${seconds} s.`);
    output.line();
    const lossRule = faults === 'none' ? undefined : faults;
    const common = { seed, messageBytes: message, mtu, seconds, windowPackets: window, trace };
    const comparison = await compareSchemes({ ops, schemes, lossRule, ...common }, output);
    runs.push(...comparison.runs);
    references.push(...comparison.references);
    measured.push(...comparison.runs.map((run) => measuredLivelock(points[i], run)));
    if (comparison.runs.length > 0) printRuns(output, comparison.runs);
    isComplete = comparison.isComplete;
    if (!isComplete) break;
  }
  output.line();
  output.line(
    'Link use: packets per second, relative to the highest rate of this operation here. Useful: packets of completed',
  );
  output.line('messages / packets sent. In theory: the closed form for the measured W (docs/recovery.md).');
  const chart = {
    title: 'Livelock: recovery schemes between two processes',
    measures: ['goodputBps', 'efficiency'],
  } as const;
  await writeSweepOutputs(options, measured, chart, output);
  output.document(LIVELOCK_DOCUMENT, { runs, references });
  if (!isComplete) throw new CommandFailure(EXIT_INTERRUPTED, 'interrupted: some runs are missing');
  const failed = runs.find(({ failure }) => failure !== null);
  if (failed !== undefined) {
    throw new CommandFailure(
      EXIT_FAILED,
      `${failed.op} under ${failed.scheme}: the queue pair failed with ${failed.failure}`,
    );
  }
  const damaged = runs.find(({ verified }) => verified === false);
  if (damaged !== undefined) {
    throw new CommandFailure(EXIT_VERIFICATION_FAILED, `${damaged.op} under ${damaged.scheme} delivered wrong data`);
  }
}

/** The options with the values of a point. */
function atPoint(options: PointOptions, point: SweepPoint): PointOptions {
  const { message, mtu, faults, window, seed } = options;
  const changed = Object.entries(point).map(([name, value]) => {
    if (!Object.hasOwn(AXES, name)) {
      throw new CommandFailure(
        EXIT_USAGE,
        `--over ${name} is not an axis (${namesHint(name, Object.keys(AXES), 'there are')})`,
      );
    }
    try {
      return [name, AXES[name as keyof PointOptions](textOf(value))];
    } catch (error) {
      throw new CommandFailure(EXIT_USAGE, `--over ${name}=${textOf(value)}: ${(error as Error).message}`);
    }
  });
  return { message, mtu, faults, window, seed, ...Object.fromEntries(changed) };
}

function messageOption(text: string): number {
  const bytes = messageSizeOption(text);
  if (bytes === 0) throw new InvalidArgumentError('a message must have at least one byte.');
  return bytes;
}

function windowOf(text: string): number {
  return parseCount(text, 2);
}

function faultsOf(text: string): string {
  if (text !== 'none') parseFaultRules(text);
  return text;
}

/** Of each run: more than nothing, at most an hour; `2` or, with a unit, `2s`. */
export function secondsOption(text: string): number {
  const seconds = /^\d+(\.\d+)?$/.test(text) ? Number(text) : durationOption(text) / 1e9;
  if (!(seconds > 0 && seconds <= 3600))
    throw new InvalidArgumentError('a run must take more than 0 s and at most 3600 s.');
  return seconds;
}
