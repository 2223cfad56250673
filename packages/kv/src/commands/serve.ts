/** `rocev2 kv serve`: an owner until Ctrl-C. */

import {
  defineDocument,
  type NicOptions,
  type Output,
  type SecureFlags,
  secureOf,
  untilInterrupted,
} from '@rocev2/command';
import { formatBytes, NS_PER_MS, NS_PER_S } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import type { IpAddress } from 'rocev2/internal/packet';
import { openDevice } from 'rocev2/internal/verbs';
import { type Eviction, type KvCounters, serveKv } from '../index.js';

const KV_SERVE_DOCUMENT = defineDocument<KvServeResult>('kv-serve');

/** Options of `rocev2 kv serve`. */
export interface KvServeOptions extends NicOptions, SecureFlags {
  /** TCP port of connection set-up. */
  readonly port: number;
  /** IP address of this side. */
  readonly bind: IpAddress;
  /** Bytes for values. */
  readonly memory: number;
  /** Entries that the table is made for. */
  readonly entries: number;
  /** Longest value in bytes. */
  readonly valueMax: number;
  /** What happens when it is full. */
  readonly eviction: Eviction;
  /** File that the entries outlive the owner in; default: none. */
  readonly snapshot?: string;
  /** Nanoseconds between snapshots. */
  readonly every: number;
}

/** Time to write the last snapshot after Ctrl-C. */
const LAST_SNAPSHOT_MS = 60_000;

/** The fields of `kv serve --json`. */
export interface KvServeResult extends KvCounters {
  /** TCP port. */
  readonly port: number;
  /** Entries at the end. */
  readonly size: number;
  /** Time until Ctrl-C. */
  readonly seconds: number;
}

/** Runs until Ctrl-C, which is the normal end of a server. */
export async function runKvServe(options: KvServeOptions, output: Output): Promise<void> {
  const { port, bind, memory, entries, valueMax, eviction, snapshot: file, every, io, engine, spin } = options;
  if (file !== undefined) output.io.allowAfterInterruption?.(LAST_SNAPSHOT_MS);
  const snapshot =
    file === undefined ? {} : { snapshot: { file, everyMs: Math.max(1, Math.round(every / NS_PER_MS)) } };
  await using device = await openDevice({
    address: bind.text,
    udpPort: 0,
    io,
    engine,
    spin,
    ...(await secureOf(options)),
  });
  const sizes = { bytes: memory, entries, valueBytesMax: valueMax };
  await using store = await serveKv({ device, port, ...sizes, eviction, ...snapshot });
  output.note(`RDMA by ${device.portDescription}`);
  output.note(`${formatBytes(memory)} for values of up to ${formatBytes(valueMax)}, ${entries} entries`);
  if (file !== undefined) output.note(`${store.size} entries from the snapshot ${file}`);
  output.note(`listening on ${bind} TCP port ${store.port}`);
  output.note('Ctrl-C ends it');
  const startNs = nowNs();
  await untilInterrupted(output.io.interrupted);
  const seconds = (nowNs() - startNs) / NS_PER_S;
  const counters = store.counters();
  output.line(
    `${store.size} entries; ${counters.sets} sets, ${counters.deletes} deletes, ${counters.evictions} evictions`,
  );
  output.document(KV_SERVE_DOCUMENT, { port: store.port, size: store.size, seconds, ...counters });
}
