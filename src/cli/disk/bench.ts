/**
 * `rocev2 disk bench`: the same I/O over RDMA and over TCP on the same server, and over NBD if asked for. Runs of the transports take turns, so
 * that a machine that is busy for a while is busy for all; of several runs the median counts.
 */

import { CommandFailure, EXIT_INTERRUPTED } from '../exit.js';
import { randomInt, SeededRandom } from '../../core/random.js';
import { formatBytes, formatNs } from '../../core/units.js';
import type { BlockDevice } from '../../storage-rpc/disk/block-device.js';
import { openBackend } from '../../storage-rpc/open-backend.js';
import type { Output, Progress } from '../output.js';
import { fillPattern } from '../pattern.js';
import { type LatencyNs, LatencySamples } from '../transfer/result.js';
import type { BenchServer } from './bench-server.js';
import { startBenchServer } from './bench-server.js';
import { ConnectedDisk } from './remote-disk.js';
import type { RdmaOptions } from './rdma-options.js';

export const BENCH_OPS = ['randread', 'randwrite'] as const;
export type BenchOp = (typeof BENCH_OPS)[number];
export const BENCH_TRANSPORTS = ['rdma', 'tcp'] as const;

export interface BenchOptions extends RdmaOptions {
  readonly transports: ReadonlyArray<(typeof BENCH_TRANSPORTS)[number]>;
  /** URI of an NBD export to measure beside them. */
  readonly nbd?: string;
  readonly ops: readonly BenchOp[];
  readonly block: readonly number[];
  readonly depth: readonly number[];
  readonly duration: number;
  readonly reps: number;
  readonly size: number;
}

/** One of `disk bench --json`'s rows. */
export interface BenchRow {
  readonly transport: string;
  readonly op: BenchOp;
  readonly blockBytes: number;
  readonly queueDepth: number;
  readonly iops: number;
  readonly bytesPerSecond: number;
  readonly latencyNs: LatencyNs;
  /** User and system time of this process, and of the server's where the benchmark has started it. */
  readonly cpuNsPerIo: number;
}

interface Cell {
  readonly op: BenchOp;
  readonly blockBytes: number;
  readonly queueDepth: number;
}

interface Contender {
  readonly name: string;
  readonly disk: BlockDevice;
  /** CPU time spent so far for it, in nanoseconds. */
  cpuNs(): Promise<number>;
}

const NS_PER_MS = 1e6;
const NS_PER_US = 1e3;
/** More would only measure how fast memory is filled beforehand. */
const AREA_BYTES_MAX = 256 << 20;
const FILL_BYTES = 1 << 20;

export async function runBench(host: string | undefined, options: BenchOptions, output: Output): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const server = host === undefined ? stack.use(await startBenchServer(options)) : undefined;
  const contenders = await connectAll(stack, host, server, options);
  for (const { disk } of contenders) await fill(disk);
  const cells = options.ops.flatMap((op) =>
    options.block.flatMap((blockBytes) => options.depth.map((queueDepth) => ({ op, blockBytes, queueDepth }))),
  );
  const progress = output.progress(cells.length);
  const rows: BenchRow[] = [];
  for (const [i, cell] of cells.entries()) {
    if (output.io.interrupted.aborted) break;
    progress.update(i, `${cell.op} ${formatBytes(cell.blockBytes)} x ${cell.queueDepth}`);
    rows.push(...(await compare(contenders, cell, options, output.io.interrupted)));
  }
  progress.stop();
  print(rows, output);
  output.document({ rows });
  if (output.io.interrupted.aborted) throw new CommandFailure(EXIT_INTERRUPTED);
}
