import { NS_PER_S, type RandomSource, randomInt } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import { type LatencyNs, LatencySamples } from '../latency-samples.js';
import { fillPattern } from '../pattern.js';

/** Kinds of requests. */
export const BENCH_OPS = ['randread', 'randwrite'] as const;
/** One of {@link BENCH_OPS}. */
export type BenchOp = (typeof BENCH_OPS)[number];

/** Parameters of one run. */
export interface BenchCell {
  /** Reads or writes, at random offsets. */
  readonly op: BenchOp;
  /** Size of a request in bytes. */
  readonly blockBytes: number;
  /** Requests in flight. */
  readonly queueDepth: number;
}

/** What the benchmark uses of a disk. */
interface MeasuredDisk {
  readonly sizeBytes: number;
  read(offset: number, length: number, into?: Uint8Array): Promise<unknown>;
  write(offset: number, data: Uint8Array): Promise<unknown>;
}

/** A disk to measure. */
export interface Contender {
  /** Its name in the table. */
  readonly transport: string;
  /** The disk itself. */
  readonly disk: MeasuredDisk;
  /** CPU time used for it so far, in nanoseconds. */
  cpuNs(): Promise<number>;
}

/** A row of `disk bench --json`. */
export interface BenchRow extends BenchCell {
  /** Name of the disk. */
  readonly transport: string;
  /** Requests completed per second. */
  readonly iops: number;
  /** Payload rate. */
  readonly bytesPerSecond: number;
  /** Latency of a request. */
  readonly latencyNs: LatencyNs;
  /** User and system time of this process, and of the server process if the benchmark started it. */
  readonly cpuNsPerIo: number;
}

/** A larger one would only take longer to fill first. */
const AREA_BYTES_MAX = 128 << 20;
const FILL_BYTES = 1 << 20;

export async function fillArea(disk: MeasuredDisk): Promise<void> {
  const bytes = Buffer.alloc(FILL_BYTES);
  fillPattern(bytes, 1);
  const end = Math.min(disk.sizeBytes, AREA_BYTES_MAX);
  for (let at = 0; at < end; at += FILL_BYTES) await disk.write(at, bytes.subarray(0, Math.min(FILL_BYTES, end - at)));
}

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
