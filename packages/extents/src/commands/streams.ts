import { open } from 'node:fs/promises';
import { hostname } from 'node:os';
import {
  CommandFailure,
  counted,
  defineDocument,
  EXIT_FAILED,
  endingInTime,
  type Output,
  orInterrupted,
} from '@rocev2/command';
import { formatBytes, NS_PER_S, RoceError, whyUnreadable } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import type { ClusterStatus, ExtentsClient, Location, StreamWriter } from '../index.js';
import { codeOf } from '../messages.js';
import { REPLICAS } from '../metadata-schema.js';
import { type ClusterOptions, withCluster } from './cluster.js';
import { sayingIfSlow } from './slow-cluster.js';

const EXTENTS_LS_DOCUMENT = defineDocument<ExtentsListResult>('extents-ls');
const EXTENTS_APPEND_DOCUMENT = defineDocument<ExtentsAppendResult>('extents-append');
const EXTENTS_READ_DOCUMENT = defineDocument<ExtentsReadResult>('extents-read');
const EXTENTS_RM_DOCUMENT = defineDocument<ExtentsRemoveResult>('extents-rm');

const DEPTH = 16;
const LAST_APPENDS_MS = 3000;
const RELEASE_MS = 1500;

export interface AppendOptions extends ClusterOptions {
  /** Longest record, bytes. */
  readonly record: number;
  readonly lines?: boolean;
  readonly takeOver?: boolean;
}

export interface ReadOptions extends ClusterOptions {
  readonly from: number;
  readonly count?: number;
}

/** The fields of `extents ls --json`. */
export interface ExtentsListResult {
  /** Streams by name. */
  readonly streams: ClusterStatus['streams'];
}

/** The fields of `extents append --json`. */
export interface ExtentsAppendResult {
  /** Its name. */
  readonly stream: string;
  /** Records acknowledged: each is durable on three nodes. */
  readonly records: number;
  /** Bytes of them. */
  readonly bytes: number;
  /** Extents left because of an error. */
  readonly failovers: number;
  /** Records sent to another extent, because there was no answer. */
  readonly resent: number;
  /** From the first append to the last answer. */
  readonly seconds: number;
}

/** A record in `extents read --json`. */
export interface ExtentsReadRecord extends Location {
  /** Which one of the stream it is, from 0. */
  readonly number: number;
  /** Its bytes in base64. */
  readonly base64: string;
}

/** The fields of `extents read --json`. */
export interface ExtentsReadResult {
  /** Its name. */
  readonly stream: string;
  /** In order. */
  readonly records: readonly ExtentsReadRecord[];
}

/** The fields of `extents rm --json`. */
export interface ExtentsRemoveResult {
  /** Its name. */
  readonly stream: string;
}

export async function runList(options: ClusterOptions, output: Output): Promise<void> {
  const { streams } = await withCluster(options, output, (client) => client.status());
  printStreams(streams, output);
  output.document(EXTENTS_LS_DOCUMENT, { streams });
}

export function printStreams(streams: ClusterStatus['streams'], output: Output): void {
  if (streams.length === 0) {
    output.line('no streams');
    return;
  }
  output.table(
    [
      { title: 'stream', align: 'left' },
      { title: 'extents', align: 'right' },
      { title: 'coded', align: 'right' },
      { title: 'sealed', align: 'right' },
      { title: 'owner', align: 'left' },
    ],
    streams.map(({ stream, extents, coded, sealedBytes, owner }) => [
      stream,
      extents,
      coded,
      formatBytes(sealedBytes),
      owner ?? '-',
    ]),
  );
}

export async function runAppend(stream: string, file: string, options: AppendOptions, output: Output): Promise<void> {
  const { io } = output;
  io.allowAfterInterruption?.(LAST_APPENDS_MS + RELEASE_MS);
  const result = await withCluster(options, output, async (client) => {
    await checkNodes(client);
    const owner = `rocev2 extents append, process ${process.pid} on ${hostname()}`;
    const open = async () => {
      await client.createStream(stream);
      return openOwned(client, stream, { owner, takeOver: options.takeOver === true });
    };
    const writer = await sayingIfSlow(open(), output, () => client.status());
    const appending = appendAll({ client, writer }, recordsOf(file, options), output);
    try {
      return await endingInTime(appending, io.interrupted, LAST_APPENDS_MS);
    } finally {
      await writer.close(); // Ends the lease at once for the next owner.
    }
  });
  const { records, bytes, failovers, seconds } = result;
  const others = failovers === 0 ? '' : `, ${counted(failovers, 'extent')} left because of an error`;
  output.line(`${counted(records, 'record')}, ${formatBytes(bytes)} in ${seconds.toFixed(2)} s${others}`);
  output.document(EXTENTS_APPEND_DOCUMENT, { stream, ...result });
}

async function openOwned(
  client: ExtentsClient,
  stream: string,
  options: { readonly owner: string; readonly takeOver: boolean },
): Promise<StreamWriter> {
  try {
    return await client.openStream(stream, options);
  } catch (cause) {
    if (codeOf(cause) !== 'BUSY') throw cause;
    const hint = 'a lease ends 30 s after its owner was last heard; --take-over takes the stream at once';
    throw new CommandFailure(EXIT_FAILED, `${(cause as Error).message} (${hint})`, { cause });
  }
}

/** Without enough nodes an append would wait indefinitely. */
export async function checkNodes(client: ExtentsClient): Promise<void> {
  const { nodes } = await client.status();
  const up = nodes.filter(({ state }) => state === 'up').length;
  if (up >= REPLICAS) return;
  const text = `an extent needs ${REPLICAS} nodes that take data, and the cluster has ${up}`;
  throw new CommandFailure(EXIT_FAILED, `${text} (start more with 'rocev2 extents node', see 'rocev2 extents status')`);
}

async function appendAll(
  { client, writer }: { readonly client: ExtentsClient; readonly writer: StreamWriter },
  records: AsyncIterable<Buffer>,
  output: Output,
): Promise<Omit<ExtentsAppendResult, 'stream'>> {
  const { interrupted } = output.io;
  const underWay = new Set<Promise<unknown>>();
  const startNs = nowNs();
  let count = 0;
  let bytes = 0;
  const work = async () => {
    const reading = records[Symbol.asyncIterator]();
    while (!interrupted.aborted) {
      const next = await orInterrupted(reading.next(), interrupted);
      if (next === undefined || next.done === true) break;
      const record = next.value;
      const append = writer.append(record).then(() => {
        count++;
        bytes += record.length;
        underWay.delete(append);
      });
      append.catch(() => {});
      underWay.add(append);
      if (underWay.size >= DEPTH) await Promise.race(underWay);
    }
    await Promise.all(underWay);
  };
  const status = () => client.status();
  await sayingIfSlow(work(), output, status, () => (underWay.size === 0 ? Number.NaN : count));
  const { failovers, resent } = writer.counters;
  return { records: count, bytes, failovers, resent, seconds: (nowNs() - startNs) / NS_PER_S };
}

async function* recordsOf(file: string, { record: max, lines }: AppendOptions): AsyncGenerator<Buffer> {
  let rest = Buffer.alloc(0);
  for await (const piece of inputOf(file)) {
    rest = Buffer.concat([rest, piece]);
    for (;;) {
      const end = lines === true ? rest.indexOf('\n') + 1 : rest.length >= max ? max : 0;
      if (end === 0) break;
      yield checked(rest.subarray(0, end), max);
      rest = rest.subarray(end);
    }
    checked(rest, max);
  }
  if (rest.length > 0) yield rest;
}

function checked(record: Buffer, max: number): Buffer {
  if (record.length <= max) return record;
  throw new RoceError(
    'ERR_ROCE_OUT_OF_RANGE',
    `a line has more than ${formatBytes(max)}`,
    'raise --record, 4MiB at most',
  );
}

async function* inputOf(file: string): AsyncGenerator<Buffer> {
  if (file === '-') {
    yield* process.stdin as AsyncIterable<Buffer>;
    return;
  }
  try {
    await using handle = await open(file);
    yield* handle.createReadStream({ highWaterMark: 1 << 20, autoClose: false }) as AsyncIterable<Buffer>;
  } catch (cause) {
    if (!(cause instanceof Error) || !('syscall' in cause)) throw cause;
    throw new RoceError('ERR_ROCE_IO', `cannot read ${file}: ${whyUnreadable(cause)}`, undefined, { cause });
  }
}

export async function runRead(
  stream: string,
  { from, count = Number.POSITIVE_INFINITY, ...options }: ReadOptions,
  output: Output,
): Promise<void> {
  const { json, io } = output;
  const records: ExtentsReadRecord[] = [];
  await withCluster(options, output, async (client) => {
    for await (const { data, number, extent, offset } of client.read(stream, { from })) {
      if (json) records.push({ number, extent, offset, base64: data.toString('base64') });
      else {
        io.stdout.write(data);
        await output.drained();
      }
      if (number + 1 - from >= count || io.interrupted.aborted) break;
    }
  });
  output.document(EXTENTS_READ_DOCUMENT, { stream, records });
}

export async function runRemove(stream: string, options: ClusterOptions, output: Output): Promise<void> {
  await withCluster(options, output, async (client) => {
    try {
      await client.deleteStream(stream);
    } catch (cause) {
      if (codeOf(cause) !== 'MISSING' || !(await client.disks()).some(({ disk }) => disk === stream)) throw cause;
      const text = `'${stream}' is a disk, and no stream (to delete it: rocev2 extents disk rm ${stream})`;
      throw new CommandFailure(EXIT_FAILED, text, { cause });
    }
  });
  output.line(`deleted '${stream}'`);
  output.document(EXTENTS_RM_DOCUMENT, { stream });
}
