/** What readers ask of the owner: where the region is, writes, and what READs cannot do. Calls of `rocev2/rpc`; docs/kv.md lists them. */

import { defineService } from '@rocev2/rpc';
import { type Fields, isCount, isDecimal, shape } from '@rocev2/rpc/internal';

/** Most writes of one call. */
export const WRITES_MAX = 128;
/** Most entries of one call of `scan`. */
export const SCAN_MAX = 256;

/** Where the region is. */
export interface StoreRegion {
  /** Address of its first byte, decimal: JSON has no numbers of 64 bits. */
  readonly addr: string;
  /** Key for READs. */
  readonly rkey: number;
  /** Bytes. */
  readonly length: number;
  /** The owner's clock, milliseconds. */
  readonly nowMs: number;
}

/** One write. */
export interface WriteOp {
  /** `set` or `delete`. */
  readonly kind: 'set' | 'delete';
  /** Of the entry to write. */
  readonly key: Uint8Array;
  /** Of `set`. */
  readonly value?: Uint8Array;
  /** Of `set`: milliseconds. */
  readonly ttlMs?: number;
  /** The version that the entry must have; 0: none. */
  readonly ifVersion?: number;
}

/** What became of a write: the version written or removed, of a conflict the version there, or the code and text of an error. */
export type WriteResult =
  | { readonly done: number }
  | { readonly conflict: number }
  | { readonly error: string; readonly message: string };

/** An entry as `read` and `scan` tell it. */
export interface ToldEntry {
  /** Whole, with the prefix. */
  readonly key: Uint8Array;
  /** As bytes; the reader has the codec. */
  readonly value: Uint8Array;
  /** As `compareAndSet` takes it. */
  readonly version: number;
}

/** A question for entries from a place in the table on. */
export interface ScanPage {
  /** 0, or `next` of the page before. */
  readonly cursor: number;
  /** Only keys that begin with it. */
  readonly prefix: Uint8Array;
}

/** Entries, and where to go on; `next` is -1 at the end. */
export interface ScanResult {
  /** Those found. */
  readonly entries: readonly ToldEntry[];
  /** Cursor of the next page. */
  readonly next: number;
}

/** Who wants to hear of changes. */
export interface WatchQuestion {
  /** Of the keys. */
  readonly prefix: Uint8Array;
  /** Changes have been missed: `lost` comes first. */
  readonly isResumed: boolean;
}

/** A change, as it is told. */
export interface ToldChange {
  /** As in `KvEvent`. */
  readonly kind: 'set' | 'delete' | 'expire' | 'evict' | 'lost';
  /** Of the entry; empty for `lost`. */
  readonly key: Uint8Array;
  /** Written or removed; 0 for `lost`. */
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

/** The methods of an owner. */
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
