import {
  defineDocument,
  estatsOf,
  type NicFlags,
  nicOf,
  type Output,
  type SecureFlags,
  secureOf,
  type TelemetryFlags,
  untilInterrupted,
} from '@rocev2/command';
import { formatBytes, NS_PER_MS, NS_PER_S } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import type { IpAddress } from 'rocev2/internal/packet';
import { openDevice } from 'rocev2/internal/verbs';
import { type Eviction, type KvCounters, serveKv } from '../index.js';

const KV_SERVE_DOCUMENT = defineDocument<KvServeResult>('kv-serve');

export interface KvServeOptions extends NicFlags, SecureFlags, TelemetryFlags {
  readonly port: number;
  readonly bind: IpAddress;
  readonly memory: number;
  readonly entries: number;
  /** Longest value in bytes. */
  readonly valueMax: number;
  readonly eviction: Eviction;
  readonly snapshot?: string;
  readonly every: number;
}

const LAST_SNAPSHOT_MS = 60_000;

/** The fields of `kv serve --json`. */
export interface KvServeResult extends KvCounters {
  /** TCP port. */
  readonly port: number;
  /** Entries at the end. */
  readonly size: number;
  /** Readers that were refused or did not connect in time. */
  readonly refusedReaders: number;
  /** Time until Ctrl-C. */
  readonly seconds: number;
}

export async function runKvServe(options: KvServeOptions, output: Output): Promise<void> {
  const { port, bind, memory, entries, valueMax, eviction, snapshot: file, every } = options;
  if (file !== undefined) output.io.allowAfterInterruption?.(LAST_SNAPSHOT_MS);
  const snapshot =
    file === undefined ? {} : { snapshot: { file, everyMs: Math.max(1, Math.round(every / NS_PER_MS)) } };
  await using device = await openDevice({
    address: bind.text,
    udpPort: 0,
    estats: estatsOf(options),
    ...nicOf(options),
    ...(await secureOf(options)),
  });
  const onNotice = (notice: string) => output.note(notice);
  const sizes = { bytes: memory, entries, valueBytesMax: valueMax };
  await using store = await serveKv({ device, port, ...sizes, eviction, ...snapshot, onNotice });
  output.note(`RDMA by ${device.portDescription}`);
  output.note(`${formatBytes(memory)} for values of up to ${formatBytes(valueMax)}, ${entries} entries`);
  if (file !== undefined) output.note(`${store.size} entries from the snapshot ${file}`);
  output.note(`listening on ${bind} TCP port ${store.port}`);
  output.ready();
  const startNs = nowNs();
  await untilInterrupted(output.io.interrupted);
  const seconds = (nowNs() - startNs) / NS_PER_S;
  const counters = store.counters();
  const { refusedReaders } = store;
  output.line(
    `${store.size} entries; ${counters.sets} sets, ${counters.deletes} deletes, ${counters.evictions} evictions`,
  );
  if (refusedReaders > 0) output.line(`${refusedReaders} refused readers`);
  output.document(KV_SERVE_DOCUMENT, { port: store.port, size: store.size, refusedReaders, seconds, ...counters });
}
