import {
  CommandFailure,
  type Copies,
  defineDocument,
  EXIT_VERIFICATION_FAILED,
  endingWithFigures,
  type Output,
  reportCopies,
} from '@rocev2/command';
import { NS_PER_S, NS_PER_US, randomInt, randomUnit, SeededRandom } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import { Histogram, type LatencySummary } from 'rocev2/internal/estats';
import type { ClientCounters, Kv } from '../index.js';
import { type KvReaderOptions, withReader } from './reader.js';

const KV_BENCH_DOCUMENT = defineDocument<KvBenchResult>('kv-bench');

export interface KvBenchOptions extends KvReaderOptions {
  readonly keys: number;
  /** Bytes of each value, 8 or more. */
  readonly value: number;
  /** Share of GETs, 0 to 1; the rest are SETs. */
  readonly gets: number;
  readonly depth: number;
  readonly duration: number;
}

/** The fields of `kv bench --json`. */
export interface KvBenchResult {
  /** Number of keys. */
  readonly keys: number;
  /** Bytes of each value. */
  readonly valueBytes: number;
  /** Operations in flight. */
  readonly depth: number;
  /** Time of the measurement. */
  readonly seconds: number;
  /** Rate of GETs that were answered. */
  readonly getsPerSecond: number;
  /** Rate of SETs that were executed. */
  readonly setsPerSecond: number;
  /** Latency of GETs. */
  readonly get: LatencySummary;
  /** Latency of SETs. */
  readonly set: LatencySummary;
  /** What the reader did. */
  readonly counters: ClientCounters;
  /** What was done by copies to mapped regions. */
  readonly copies: Copies;
}

interface Samples {
  readonly gets: Histogram;
  readonly sets: Histogram;
}

export async function runKvBench(host: string, options: KvBenchOptions, output: Output): Promise<void> {
  const { keys, value, depth, duration } = options;
  const result = await withReader(host, options, async (kv, device): Promise<KvBenchResult> => {
    const work = measure(kv, options, output.io.interrupted);
    const { gets, sets, seconds } = await endingWithFigures(work, output.io);
    return {
      keys,
      valueBytes: value,
      depth,
      seconds,
      getsPerSecond: gets.count / seconds,
      setsPerSecond: sets.count / seconds,
      get: gets.summary(),
      set: sets.summary(),
      counters: kv.counters(),
      copies: reportCopies(output, device.counters()),
    };
  });
  output.line(`${keys} keys, values of ${value} bytes, ${depth} in flight, ${duration / NS_PER_S} s`);
  output.line();
  output.table(
    ['', 'a second', 'p50 us', 'p99 us', 'p99.9 us', 'max us'].map((title, k) => ({
      title,
      align: k === 0 ? 'left' : 'right',
    })),
    [rowOf('GET', result.getsPerSecond, result.get), rowOf('SET', result.setsPerSecond, result.set)],
  );
  output.document(KV_BENCH_DOCUMENT, result);
}

function rowOf(name: string, perSecond: number, { p50Ns, p99Ns, p999Ns, maxNs }: LatencySummary): (string | number)[] {
  return [name, Math.round(perSecond), ...[p50Ns, p99Ns, p999Ns, maxNs].map((ns) => (ns / NS_PER_US).toFixed(1))];
}

function keyedValue(index: number, bytes: number): Buffer {
  const value = Buffer.alloc(bytes, index % 251);
  value.writeUInt32LE(index);
  return value;
}

async function measure(
  kv: Kv<Uint8Array>,
  { keys, value, gets: share, depth, duration }: KvBenchOptions,
  interrupted: AbortSignal,
): Promise<Samples & { readonly seconds: number }> {
  const name = (index: number) => `bench:${index}`;
  for (let first = 0; first < keys && !interrupted.aborted; first += 1000) {
    const count = Math.min(1000, keys - first);
    await Promise.all(Array.from({ length: count }, (_, k) => kv.set(name(first + k), keyedValue(first + k, value))));
  }
  const samples: Samples = { gets: new Histogram(), sets: new Histogram() };
  const random = new SeededRandom(1).stream('bench');
  const startNs = nowNs();
  const endNs = startNs + duration;
  const worker = async () => {
    while (nowNs() < endNs && !interrupted.aborted) {
      const index = randomInt(random, 0, keys - 1);
      const isGet = randomUnit(random) < share;
      const beginNs = nowNs();
      if (isGet) {
        const got = await kv.get(name(index));
        if (got !== undefined && (got.length !== value || Buffer.from(got).readUInt32LE() !== index))
          throw new CommandFailure(EXIT_VERIFICATION_FAILED, `the value of ${name(index)} is that of another key`);
      } else await kv.set(name(index), keyedValue(index, value));
      (isGet ? samples.gets : samples.sets).record(nowNs() - beginNs);
    }
  };
  await Promise.all(Array.from({ length: depth }, worker));
  return { ...samples, seconds: (nowNs() - startNs) / NS_PER_S };
}
