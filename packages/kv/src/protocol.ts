/** Calls of `@rocev2/rpc`; docs/kv.md lists them. */

import { defineService } from '@rocev2/rpc';
import { type Fields, isCount, isDecimal, shape } from '@rocev2/rpc/internal';

export const WRITES_MAX = 128;
export const SCAN_MAX = 256;

/** Where the region is. */
export interface StoreRegion {
  /** Address of its first byte, decimal: JSON has no numbers of 64 bits. */
  readonly addr: string;
  readonly rkey: number;
  /** Bytes. */
  readonly length: number;
  readonly nowMs: number;
}

export interface WriteOp {
  readonly kind: 'set' | 'delete';
  readonly key: Uint8Array;
  readonly value?: Uint8Array | undefined;
  readonly ttlMs?: number | undefined;
  readonly ifVersion?: number | undefined;
}

export type WriteResult =
  | { readonly done: number }
  | { readonly conflict: number }
  | { readonly error: string; readonly message: string };

export interface ToldEntry {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
  readonly version: number;
}

export interface ScanPage {
  readonly cursor: number;
  readonly prefix: Uint8Array;
}

export interface ScanResult {
  readonly entries: readonly ToldEntry[];
  readonly next: number;
}

export interface WatchQuestion {
  readonly prefix: Uint8Array;
  readonly isResumed: boolean;
}

export interface ToldChange {
  readonly kind: 'set' | 'delete' | 'expire' | 'evict' | 'lost';
  readonly key: Uint8Array;
  readonly version: number;
}

const isBytes = (value: unknown) => value instanceof Uint8Array;
const isList = (value: unknown, max: number, fits: (item: Fields) => boolean) =>
  Array.isArray(value) &&
  value.length <= max &&
  value.every((item) => typeof item === 'object' && item !== null && fits(item));
const isEntry = ({ key, value, version }: Fields) => isBytes(key) && isBytes(value) && isCount(version);

function isWrite({ kind, key, value, ttlMs, ifVersion }: Fields): boolean {
  if (!isBytes(key) || (ifVersion !== undefined && !isCount(ifVersion))) return false;
  if (kind === 'delete') return true;
  const isTtl = ttlMs === undefined || (typeof ttlMs === 'number' && ttlMs > 0 && ttlMs <= 2 ** 50);
  return kind === 'set' && isBytes(value) && isTtl;
}

function isResult({ done, conflict, error, message }: Fields): boolean {
  return isCount(done) || isCount(conflict) || (typeof error === 'string' && typeof message === 'string');
}

const CHANGES = ['set', 'delete', 'expire', 'evict', 'lost'];

export const KV_SERVICE = defineService({
  open: {
    input: shape<object>('question', () => true),
    output: shape<StoreRegion>(
      'place of a region',
      ({ addr, rkey, length, nowMs }) => isDecimal(addr) && isCount(rkey) && isCount(length) && isCount(nowMs),
    ),
  },
  write: {
    input: shape<readonly WriteOp[]>('list of writes', (ops) => isList(ops, WRITES_MAX, isWrite)),
    output: shape<readonly WriteResult[]>('list of results', (results) => isList(results, WRITES_MAX, isResult)),
  },
  read: {
    input: shape<{ readonly key: Uint8Array }>('key', ({ key }) => isBytes(key)),
    output: shape<{ readonly entry?: ToldEntry }>(
      'entry',
      ({ entry }) => entry === undefined || (typeof entry === 'object' && entry !== null && isEntry(entry as Fields)),
    ),
  },
  scan: {
    input: shape<ScanPage>('page', ({ cursor, prefix }) => isCount(cursor) && isBytes(prefix)),
    output: shape<ScanResult>(
      'page of entries',
      ({ entries, next }) => isList(entries, Number.POSITIVE_INFINITY, isEntry) && Number.isSafeInteger(next),
    ),
  },
  watch: {
    input: shape<WatchQuestion>('prefix', ({ prefix, isResumed }) => isBytes(prefix) && typeof isResumed === 'boolean'),
    output: shape<ToldChange>(
      'change',
      ({ kind, key, version }) => CHANGES.includes(kind as string) && isBytes(key) && isCount(version),
    ),
    stream: 'output',
  },
  touch: {
    input: shape<{ readonly keys: readonly Uint8Array[] }>(
      'list of keys',
      ({ keys }) => Array.isArray(keys) && keys.length <= WRITES_MAX && keys.every(isBytes),
    ),
    output: shape<object>('answer', () => true),
  },
});
