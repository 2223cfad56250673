/**
 * Where a manager keeps what it knows: a map of texts with transactions, leases and a watch, the common part of LMDB and etcd. A manager keeps nothing else that
 * matters, so that another one can go on.
 */

/** A value with its version. */
export interface MetadataEntry {
  /** Name of the value, such as `extent/7`. */
  readonly key: string;
  /** The text. */
  readonly value: string;
  /** Changes with every change of the value, and is never used again for the key. At least 1. */
  readonly version: number;
}

/** A change of several keys that happens whole or not at all. */
export interface Transaction {
  /** Versions that must hold; 0: there is no such key. */
  readonly compare: ReadonlyArray<{ readonly key: string; readonly version: number }>;
  /** Values to write. `ttlMs`: the key vanishes after this time, unless it is renewed. */
  readonly put?: ReadonlyArray<{ readonly key: string; readonly value: string; readonly ttlMs?: number }>;
  /** Keys to delete. */
  readonly remove?: readonly string[];
}

/**
 * The store of a manager. Everything rejects if the store cannot be reached. Where several managers share a store, a commit that rejects may or may not have happened, or
 * happen yet: `LeaderMetadata` finds out.
 */
export interface Metadata {
  /** One value. Undefined: there is none. */
  get(key: string): Promise<MetadataEntry | undefined>;
  /** All values whose keys begin so, by key. */
  list(prefix: string): Promise<readonly MetadataEntry[]>;
  /** Resolves when the transaction is durable, to the version of all that it wrote; to 0 if a version did not hold, and nothing has changed. */
  commit(transaction: Transaction): Promise<number>;
  /** Lets a key with a time to live live for that long from now on; it is the time that it was written with. False: it has another version, or has vanished. */
  renew(key: string, version: number, ttlMs: number): Promise<boolean>;
  /** Calls back after changes of keys that begin so, those that vanish included. The result ends it. */
  watch(prefix: string, onChange: (key: string) => void): () => void;
  /** Ends the use of the store. */
  close(): Promise<void>;
}
