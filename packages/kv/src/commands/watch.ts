import { CommandFailure, defineDocument, EXIT_FAILED, type Output } from '@rocev2/command';
import { NS_PER_S } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import type { KvEvent } from '../index.js';
import { type KvReaderOptions, withReader } from './reader.js';

const KV_WATCH_DOCUMENT = defineDocument<KvWatchResult>('kv-watch');

const KEPT_MAX = 1000;

export interface KvWatchOptions extends KvReaderOptions {
  readonly count?: number;
}

/** One change in `kv watch --json`. */
export interface KvChange {
  /** What has happened. */
  readonly kind: KvEvent['kind'];
  /** The key, as UTF-8; empty for `lost`. */
  readonly key: string;
  /** The version that was written or removed; 0 for `lost`. */
  readonly version: number;
}

/** The fields of `kv watch --json`. */
export interface KvWatchResult {
  /** Changes that were seen. */
  readonly count: number;
  /** Gaps: changes before each of them were not seen. */
  readonly lost: number;
  /** Time until the end. */
  readonly seconds: number;
  /** The last 1000 of them. */
  readonly changes: readonly KvChange[];
}

export async function runKvWatch(
  host: string,
  prefix: string,
  { count: limit = Number.POSITIVE_INFINITY, ...options }: KvWatchOptions,
  output: Output,
): Promise<void> {
  const { interrupted } = output.io;
  const changes: KvChange[] = [];
  let [count, lost] = [0, 0];
  const startNs = nowNs();
  const note = ({ kind, key, version }: KvEvent) => {
    count++;
    if (kind === 'lost') lost++;
    output.line(kind === 'lost' ? 'lost: changes have been missed' : `${kind} ${key} version ${version}`);
    changes.push({ kind, key: key.toString(), version });
    if (changes.length > KEPT_MAX) changes.shift();
  };
  await withReader(host, options, async (kv) => {
    output.note('Ctrl-C ends it');
    try {
      for await (const change of kv.watch(prefix, { signal: interrupted })) {
        note(change);
        if (count >= limit) return;
      }
    } catch (error) {
      if (!interrupted.aborted) throw error;
    }
    if (!interrupted.aborted) throw new CommandFailure(EXIT_FAILED, 'the owner has closed its store');
  });
  output.document(KV_WATCH_DOCUMENT, { count, lost, seconds: (nowNs() - startNs) / NS_PER_S, changes });
}
