/** One run of the disk benchmark: random I/O of one size at one queue depth on one disk, for a time. */

import { type RandomSource, randomInt } from '../../core/random.js';
import { NS_PER_S } from '../../core/units.js';
import { nowNs } from '../../driver/system-clock.js';
import type { BlockDevice } from '../../storage-rpc/disk/block-device.js';
import { fillPattern } from '../pattern.js';
import { type LatencyNs, LatencySamples } from '../transfer/samples.js';

/** What one request can do. */
export const BENCH_OPS = ['randread', 'randwrite'] as const;
/** One of {@link BENCH_OPS}. */
export type BenchOp = (typeof BENCH_OPS)[number];

/** What one run does. */
export interface BenchCell {
  /** Reads or writes, at random places. */
  readonly op: BenchOp;
  /** Bytes of a request. */
  readonly blockBytes: number;
  /** Requests under way at a time. */
  readonly queueDepth: number;
}

/** A disk that takes part. */
export interface Contender {
  /** Its name in the table. */
  readonly transport: string;
  /** Where requests go. */
  readonly disk: BlockDevice;
  /** CPU time spent on its behalf so far, in nanoseconds. */
  cpuNs(): Promise<number>;
}

/** A row of `disk bench --json`. */
export interface BenchRow extends BenchCell {
  /** Name of the disk. */
  readonly transport: string;
  /** Requests completed a second. */
  readonly iops: number;
  /** Payload. */
  readonly bytesPerSecond: number;
  /** Of single requests. */
  readonly latencyNs: LatencyNs;
  /** User and system time of this process, and of the server's where the benchmark has started it. */
  readonly cpuNsPerIo: number;
}

/** Reads and writes stay in as much: more would only measure how fast memory is filled beforehand. */
const AREA_BYTES_MAX = 128 << 20;
const FILL_BYTES = 1 << 20;

/** Puts data where the runs will read, so that nothing is a hole. */
export async function fillArea(disk: BlockDevice): Promise<void> {
  const bytes = Buffer.alloc(FILL_BYTES);
  fillPattern(bytes, 1);
  const end = Math.min(disk.sizeBytes, AREA_BYTES_MAX);
  for (let at = 0; at < end; at += FILL_BYTES) await disk.write(at, bytes.subarray(0, Math.min(FILL_BYTES, end - at)));
}

/** Keeps `queueDepth` requests under way for `durationNs`, or until interrupted; at least one is done. */
export async function runCell(
  { transport, disk, cpuNs }: Contender,
  cell: BenchCell,
  durationNs: number,
  random: RandomSource,
  interrupted: AbortSignal,
): Promise<BenchRow> {
  const { op, blockBytes, queueDepth } = cell;
  const blocks = Math.floor(Math.min(disk.sizeBytes, AREA_BYTES_MAX) / blockBytes);
  const latency = new LatencySamples();
  let done = 0;
  const cpuBefore = await cpuNs();
  const startNs = nowNs();
  const endNs = startNs + durationNs;
  const worker = async (n: number): Promise<void> => {
    const bytes = Buffer.alloc(blockBytes);
    fillPattern(bytes, n);
    for (let beginNs = startNs; beginNs < endNs && !interrupted.aborted; ) {
      const offset = randomInt(random, 0, blocks - 1) * blockBytes;
      if (op === 'randread') await disk.read(offset, blockBytes, bytes);
      else await disk.write(offset, bytes);
      const doneNs = nowNs();
      latency.add(doneNs - beginNs);
      beginNs = doneNs;
      done++;
    }
  };
  await Promise.all(Array.from({ length: queueDepth }, (_, n) => worker(n)));
  const seconds = (nowNs() - startNs) / NS_PER_S;
  const spentNs = (await cpuNs()) - cpuBefore;
  return {
    transport,
    ...cell,
    iops: done / seconds,
    bytesPerSecond: (done * blockBytes) / seconds,
    latencyNs: latency.summary()!,
    cpuNsPerIo: Math.round(spentNs / done),
  };
}
