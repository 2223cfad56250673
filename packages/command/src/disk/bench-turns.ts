/**
 * Measures several disks in turns, so that load from other programs affects all of them; the median run counts. Shared
 * by `disk bench` and `nvme bench`.
 */

import type { Command } from 'commander';
import { InvalidArgumentError } from 'commander';
import { formatBytes, formatNs, NS_PER_S, RoceError, SeededRandom } from 'rocev2/internal/core';
import { choiceOption, countOption, durationOption, listOption, optionWithDefault, sizeOption } from '../options.js';
import { type Column, leftAligned, type Output, rightAligned } from '../output.js';
import {
  BENCH_OPS,
  type BenchCell,
  type BenchOp,
  type BenchRow,
  type Contender,
  fillArea,
  runCell,
} from './bench-run.js';

/** What is measured; each combination of operation, block and depth is run. */
export interface BenchPlan {
  /** Operations. */
  readonly ops: readonly BenchOp[];
  /** Size of a request in bytes. */
  readonly blocks: readonly number[];
  /** Requests in flight. */
  readonly depths: readonly number[];
  /** Nanoseconds of one run. */
  readonly duration: number;
  /** Runs of each combination; the median counts. */
  readonly reps: number;
  /** Seed of the offsets. Default 1. */
  readonly seed?: number;
}

const WARM_UP_DEPTH = 4;
/**
 * After this many requests of a kind V8 has compiled their code: the first ten thousand cost up to three times as much.
 */
const WARM_UP_REQUESTS = 20_000;
const WARM_UP_RUNS = 5;

/** Adds the options of a plan to a command; `blocks` and `depths` are the defaults. */
export function addPlanOptions(command: Command, blocks: string, depths: string): Command {
  return command
    .addOption(
      optionWithDefault('--ops <list>', BENCH_OPS.join(', '), listOption(choiceOption(BENCH_OPS)), BENCH_OPS.join()),
    )
    .addOption(optionWithDefault('--blocks <list>', 'request sizes', listOption(blockOption), blocks))
    .addOption(
      optionWithDefault('--depths <list>', 'queue depths: requests in flight', listOption(countOption), depths),
    )
    .addOption(optionWithDefault('-D, --duration <time>', 'duration of one run', durationOption, '500ms'))
    .option('--reps <n>', 'runs of each combination; the median counts', countOption, 3);
}

function blockOption(text: string): number {
  const bytes = sizeOption(text);
  if (bytes > 0 && bytes % 512 === 0) return bytes;
  throw new InvalidArgumentError('the block size must be a multiple of 512 bytes.');
}

/**
 * Fills the disks, warms up, and measures every combination. Throws ERR_ROCE_OUT_OF_RANGE for a disk that is smaller
 * than a block.
 */
export async function measureInTurns(
  contenders: readonly Contender[],
  options: BenchPlan,
  output: Output,
): Promise<BenchRow[]> {
  for (const { transport, disk } of contenders) {
    const largest = Math.max(...options.blocks);
    if (disk.sizeBytes >= largest) continue;
    throw new RoceError(
      'ERR_ROCE_OUT_OF_RANGE',
      `the disk over ${transport} is smaller than one block of ${largest} bytes`,
    );
  }
  const { interrupted } = output.io;
  for (const contender of contenders) {
    const { transport, disk } = contender;
    await output.during(`filling the disk over ${transport}`, fillArea(disk));
    await output.during(`warming up over ${transport}`, warmUp(contender, options, interrupted));
  }
  const cells = options.ops.flatMap((op) =>
    options.blocks.flatMap((blockBytes) => options.depths.map((queueDepth) => ({ op, blockBytes, queueDepth }))),
  );
  output.note(`measuring ${cells.length} cells, ${options.reps} times ${formatNs(options.duration)} for each disk`);
  const progress = output.progress(cells.length * options.reps * contenders.length);
  const rows: BenchRow[] = [];
  let runs = 0;
  for (const cell of cells) {
    const text = `${cell.op} ${formatBytes(cell.blockBytes)}, queue depth ${cell.queueDepth}`;
    const onRun = () => progress.update(runs++, text);
    const turns = await runTurns(contenders, cell, options, { interrupted, onRun });
    if (interrupted.aborted) break;
    rows.push(...turns);
  }
  progress.stop();
  return rows;
}

/** Warms up the compiled code with the same work for each disk, so that the first one measured has no disadvantage. */
async function warmUp(contender: Contender, { ops, blocks, duration }: BenchPlan, interrupted: AbortSignal) {
  const random = new SeededRandom(0).stream('warm-up');
  const blockBytes = Math.min(...blocks);
  for (const op of ops) {
    const cell = { op, blockBytes, queueDepth: WARM_UP_DEPTH };
    let requests = 0;
    for (let run = 0; run < WARM_UP_RUNS && requests < WARM_UP_REQUESTS && !interrupted.aborted; run++) {
      const { iops } = await runCell(contender, cell, 2 * duration, random, interrupted);
      requests += (iops * 2 * duration) / NS_PER_S;
    }
  }
}

async function runTurns(
  contenders: readonly Contender[],
  cell: BenchCell,
  { duration, reps, seed = 1 }: BenchPlan,
  { interrupted, onRun }: { readonly interrupted: AbortSignal; onRun(): void },
): Promise<BenchRow[]> {
  const runs: BenchRow[][] = contenders.map(() => []);
  for (let rep = 0; rep < reps && !(interrupted.aborted && rep > 0); rep++) {
    for (const [i, contender] of contenders.entries()) {
      onRun();
      const random = new SeededRandom(seed).stream(`offsets ${rep}`);
      runs[i].push(await runCell(contender, cell, duration, random, interrupted));
    }
  }
  return runs.map((rows) => rows.toSorted((a, b) => a.iops - b.iops)[Math.floor(rows.length / 2)]);
}

const COLUMNS: readonly Column[] = [
  ...leftAligned('Op'),
  ...rightAligned('Block', 'Depth'),
  ...leftAligned('Transport'),
  ...rightAligned('IOPS', 'MB/s', 'p50', 'p99', 'CPU/IO'),
];

/** Prints a table. */
export function printRows(rows: readonly BenchRow[], output: Output): void {
  output.table(
    COLUMNS,
    rows.map(({ op, blockBytes, queueDepth, transport, iops, bytesPerSecond, latencyNs, cpuNsPerIo }) => [
      op,
      formatBytes(blockBytes),
      queueDepth,
      transport,
      Math.round(iops),
      (bytesPerSecond / 1e6).toFixed(1),
      formatNs(latencyNs.p50),
      formatNs(latencyNs.p99),
      formatNs(cpuNsPerIo),
    ]),
  );
}
