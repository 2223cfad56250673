import { checkKind, RoceError, type WaitOptions } from 'rocev2/internal/core';

/** A key: text in UTF-8, or bytes. */
export type Key = string | Uint8Array;

/** The entry of a key. */
export interface KvEntry<V> {
  /** The value, as returned by the codec. */
  readonly value: V;
  /** Unique among all values that the entry has ever had; for {@link Kv.compareAndSet}. */
  readonly version: number;
}

/** Options of {@link Kv.set}. */
export interface SetOptions extends WaitOptions {
  /** Milliseconds until the entry ceases to exist, more than 0. Default: it stays. */
  readonly ttlMs?: number | undefined;
}

/** Options of {@link Kv.entries}. */
export interface ScanOptions extends WaitOptions {
  /** Only keys that begin with this. Default: all. */
  readonly prefix?: Key | undefined;
}

/**
 * A change of an entry from {@link Kv.watch}. `lost`: changes are missing because the watcher was too slow; its key is
 * empty.
 */
export interface KvEvent {
  /** What has happened. */
  readonly kind: 'set' | 'delete' | 'expire' | 'evict' | 'lost';
  /** The key of the entry. */
  readonly key: Buffer;
  /** The version that was written or removed; 0 for `lost`. */
  readonly version: number;
}

/** The entries of a store. Operations on one key are linearizable; docs/kv.md lists the exceptions. */
export interface Kv<V> extends AsyncDisposable {
  /** The value of a key; undefined if there is no such entry. */
  get(key: Key, options?: WaitOptions): Promise<V | undefined>;
  /** The same with its version. */
  getEntry(key: Key, options?: WaitOptions): Promise<KvEntry<V> | undefined>;
  /** The values of several keys, in their order. Each is read separately: together they are no snapshot. */
  getMany(keys: readonly Key[], options?: WaitOptions): Promise<(V | undefined)[]>;
  /** Whether there is such an entry. */
  has(key: Key, options?: WaitOptions): Promise<boolean>;
  /**
   * Writes a value and resolves to its version. Rejects with ERR_ROCE_OUT_OF_RANGE for a key or value that is too long,
   * ERR_ROCE_LIMIT when the store is full. After any other error the value may have been written.
   */
  set(key: Key, value: V, options?: SetOptions): Promise<number>;
  /**
   * Writes a value if the entry has `version`; 0: if there is no entry. Resolves to the new version, or undefined if it
   * has another one. Errors as {@link set}.
   */
  compareAndSet(key: Key, version: number, value: V, options?: SetOptions): Promise<number | undefined>;
  /** Removes an entry. Resolves to whether there was one. */
  delete(key: Key, options?: WaitOptions): Promise<boolean>;
  /**
   * All entries, in no order. An entry that exists during the whole iteration is returned exactly once. The result is
   * not a snapshot.
   */
  entries(options?: ScanOptions): AsyncIterableIterator<[Buffer, KvEntry<V>]>;
  /** Changes of all keys that begin with `prefix`, from the first `next()` on, until the loop is left. */
  watch(prefix?: Key, options?: WaitOptions): AsyncIterableIterator<KvEvent>;
  /** Ends it. Safe to call twice. */
  close(): Promise<void>;
}

export function keyBytes(key: Key): Buffer {
  if (typeof key === 'string') return Buffer.from(key);
  if (key instanceof Uint8Array) return Buffer.from(key.buffer, key.byteOffset, key.length);
  throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', `a key is of type ${typeof key}`, 'it must be text or bytes');
}

export function ownKeyBytes(key: Key): Buffer {
  return typeof key === 'string' ? Buffer.from(key) : Buffer.from(keyBytes(key));
}

export function checkTtl(ttlMs: number | undefined): void {
  if (ttlMs === undefined || (typeof ttlMs === 'number' && ttlMs > 0 && ttlMs <= 2 ** 50)) return;
  throw new RoceError(
    'ERR_ROCE_OUT_OF_RANGE',
    `ttlMs is ${String(ttlMs)}`,
    'it must be more than 0; leave it out for no limit',
  );
}

export function checkVersion(version: number): void {
  if (Number.isSafeInteger(version) && version >= 0) return;
  throw new RoceError(
    'ERR_ROCE_OUT_OF_RANGE',
    `version is ${String(version)}`,
    'pass that of getEntry() or set(), or 0 for no entry',
  );
}

export function checkKeys(keys: unknown): void {
  checkKind('keys', keys, Array.isArray(keys), 'a list of keys');
}
