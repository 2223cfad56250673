/** `bw --over`: the same command between two processes for each combination of option values. */

import {
  ChildService,
  CommandFailure,
  EXIT_FAILED,
  EXIT_USAGE,
  leftAligned,
  type Output,
  rightAligned,
  whileAlive,
} from '@rocev2/command';
import {
  checkSweepOutputs,
  type MeasuredRun,
  measuredTheory,
  type SweepOutputOptions,
  type SweepPoint,
  sweepPoints,
  textOf,
  writeSweepOutputs,
} from '@rocev2/lab/internal';
import type { Command } from 'commander';
import { formatNs, formatRate, namesHint } from 'rocev2/internal/core';
import type { RecoveryName } from 'rocev2/internal/retransmit';
import type { CommandService } from './command-service.js';
import type { TransferOp } from './endpoint.js';
import type { TransferDocument } from './result.js';

const PROGRAM = new URL('./command-process.js', import.meta.url);
const SERVER_ADDRESS = '127.0.0.1';
const CHART = { title: 'Throughput between two processes', measures: ['goodputBps', 'completionP99Ns'] } as const;
/** Of the sweep itself. */
const SWEEP_OPTIONS = ['--over', '--csv', '--plot', '--y'];
/** Every run would write the same file, or print something other than one result. */
const EXCLUDED = [
  ...['pcap', 'trace', 'estats', 'estatsHttp', 'all', 'runInfinitely', 'interval'],
  ...['perftest', 'frame', 'bind', 'udpPort', 'json'],
];
/** Losses belong to one end, or they would count twice. */
const CLIENT_OPTIONS = ['--faults', '--loss', '--seed'];

interface TypedSweep {
  readonly op: TransferOp;
  readonly host: string | undefined;
  readonly options: SweepOutputOptions;
}

/** Starts a server process and a client process for each point. */
export async function sweepTransfers(
  { op, host, options }: TypedSweep,
  command: Command,
  output: Output,
): Promise<void> {
  await checkSweepOutputs(options);
  if (host !== undefined) {
    throw new CommandFailure(
      EXIT_USAGE,
      '--over, --csv and --plot start both ends on this machine: leave the host out',
    );
  }
  const excluded = EXCLUDED.find((name) => command.getOptionValueSource(name) === 'cli');
  if (excluded !== undefined) {
    const flag = command.options.find((option) => option.attributeName() === excluded)?.long;
    throw new CommandFailure(EXIT_USAGE, `${flag} cannot be combined with --over`);
  }
  const points = sweepPoints(options.over ?? []);
  for (const point of points) checkPoint(point, command);
  const common = withoutOptions(output.io.args.slice(output.io.args.indexOf('bw') + 1), SWEEP_OPTIONS);
  common.splice(common.indexOf(op), 1, '--udp-port', '0');
  const runs: MeasuredRun[] = [];
  const stopped = new Promise<undefined>((resolve) => {
    output.io.interrupted.addEventListener('abort', () => resolve(undefined), { once: true });
  });
  const progress = output.progress(points.length);
  for (const point of points) {
    if (output.io.interrupted.aborted) break;
    const args = [...common, ...Object.entries(point).flatMap(([name, value]) => [`--${name}`, textOf(value)])];
    const run = await transfer(op, args, stopped);
    if (run === undefined) break;
    if (typeof run === 'string') output.warn(`${JSON.stringify(point)}: ${run}`);
    runs.push(measuredTransfer(point, run, command));
    progress.update(runs.length, `${runs.length} of ${points.length} runs`);
  }
  progress.stop();
  printRuns(runs, output);
  await writeSweepOutputs(options, runs, CHART, output);
  output.throwIfInterrupted('interrupted: some runs are missing');
  if (runs.some(({ measures }) => measures.failedFlows !== 0)) {
    throw new CommandFailure(EXIT_FAILED, 'some runs failed: their lines have no goodput');
  }
}

/** Axes are options with values, which their own parsers check. */
function checkPoint(point: SweepPoint, command: Command): void {
  for (const [name, value] of Object.entries(point)) {
    const axes = command.options.filter(
      (option) =>
        option.required && !SWEEP_OPTIONS.includes(option.long ?? '') && !EXCLUDED.includes(option.attributeName()),
    );
    const option = axes.find(({ long }) => long === `--${name}`);
    if (option === undefined) {
      const names = axes.flatMap(({ long }) => long?.slice(2) ?? []);
      throw new CommandFailure(
        EXIT_USAGE,
        `--over ${name} is not an option with a value (${namesHint(name, names, 'there are')})`,
      );
    }
    try {
      option.parseArg?.(textOf(value), undefined);
    } catch (error) {
      throw new CommandFailure(EXIT_USAGE, `--over ${name}=${textOf(value)}: ${(error as Error).message}`);
    }
  }
}

/** `args` without these options and their values. */
function withoutOptions(args: readonly string[], names: readonly string[]): string[] {
  return args.filter((arg, i) => !names.includes(arg.split('=')[0]) && !(names.includes(args[i - 1] ?? '') && i > 0));
}

/** The client's document, or the error of an end that failed; undefined once `stopped` is. */
async function transfer(
  op: TransferOp,
  args: readonly string[],
  stopped: Promise<undefined>,
): Promise<TransferDocument | string | undefined> {
  await using server = new ChildService<CommandService>('the server', PROGRAM);
  await using client = new ChildService<CommandService>('the client', PROGRAM);
  const run = async () => {
    const serving = server.call('run', { args: ['bw', op, ...withoutOptions(args, CLIENT_OPTIONS)] });
    const early = await Promise.race([server.call('noted', { text: 'waiting for' }), serving]);
    if (early !== undefined) return early.stderr.trimEnd();
    const { exitCode, stdout, stderr } = await client.call('run', {
      args: ['bw', op, SERVER_ADDRESS, ...args, '--json'],
    });
    return exitCode === 0 ? (JSON.parse(stdout) as TransferDocument) : stderr.trimEnd();
  };
  return await Promise.race([whileAlive([server, client], run()), stopped]);
}

/** With the columns of `sim sweep`; it lacks those of queues, switches and flows that end. */
function measuredTransfer(point: SweepPoint, run: TransferDocument | string, command: Command): MeasuredRun {
  if (typeof run === 'string') return { point, measures: { failedFlows: 1 } };
  const { goodputBps, usefulShare, latencyNs, counters, recovery, sizeBytes, mtu } = run;
  const { faults } = { ...command.opts(), ...point } as { readonly faults?: string };
  const messagePackets = Math.ceil(sizeBytes / mtu);
  const theory =
    recovery === 'none' ? null : measuredTheory(recovery as RecoveryName, faults, messagePackets, counters).closedForm;
  return {
    point,
    measures: {
      goodputBps,
      efficiency: usefulShare,
      theoreticalEfficiency: theory,
      retransmittedPackets: counters.tx_retransmitted ?? 0,
      failedFlows: 0,
      completionP50Ns: latencyNs?.p50 ?? null,
      completionP99Ns: latencyNs?.p99 ?? null,
    },
  };
}

function printRuns(runs: readonly MeasuredRun[], output: Output): void {
  const percent = (share: number | null | undefined) => (share == null ? '' : `${(100 * share).toFixed(2)} %`);
  const time = (ns: number | null | undefined) => (ns == null ? '' : formatNs(ns));
  output.table(
    [
      ...leftAligned(...Object.keys(runs[0]?.point ?? {})),
      ...rightAligned('Goodput', 'Useful', 'In theory', 'p50', 'p99', 'Resent'),
    ],
    runs.map(({ point, measures }) => [
      ...Object.values(point).map(textOf),
      measures.goodputBps == null ? 'failed' : formatRate(measures.goodputBps),
      percent(measures.efficiency),
      percent(measures.theoreticalEfficiency),
      time(measures.completionP50Ns),
      time(measures.completionP99Ns),
      measures.retransmittedPackets ?? '',
    ]),
  );
}
