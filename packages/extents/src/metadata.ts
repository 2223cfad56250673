/**
 * Where a manager keeps its state: a map of texts with transactions, leases and a watch, the common part of LMDB and
 * etcd.
 */

export interface MetadataEntry {
  readonly key: string;
  readonly value: string;
  /** Changes with every change of the value, and is never used again for the key. At least 1. */
  readonly version: number;
}

export interface Transaction {
  /** Versions that must hold; 0: there is no such key. */
  readonly compare: ReadonlyArray<{ readonly key: string; readonly version: number }>;
  /** `ttlMs`: the key vanishes after this time, unless it is renewed. */
  readonly put?: ReadonlyArray<{ readonly key: string; readonly value: string; readonly ttlMs?: number }>;
  readonly remove?: readonly string[];
}

/**
 * Where several managers share a store, a commit that rejects may or may not have happened, or happen yet:
 * `LeaderMetadata` finds out.
 */
export interface Metadata {
  get(key: string): Promise<MetadataEntry | undefined>;
  list(prefix: string): Promise<readonly MetadataEntry[]>;
  /**
   * Resolves when the transaction is durable, to the version of all that it wrote; to 0 if a version did not hold, and
   * nothing has changed.
   */
  commit(transaction: Transaction): Promise<number>;
  /** False: it has another version, or has vanished. */
  renew(key: string, version: number, ttlMs: number): Promise<boolean>;
  /** The result ends it. */
  watch(prefix: string, onChange: (key: string) => void): () => void;
  close(): Promise<void>;
}
