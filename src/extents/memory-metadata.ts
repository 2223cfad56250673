/** Metadata in memory: for tests, and for a cluster that ends with its process. */

import type { Clock } from '../core/clock.js';
import { NS_PER_MS } from '../core/units.js';
import type { Metadata, MetadataEntry, Transaction } from './metadata.js';

interface Kept extends MetadataEntry {
  /** Takes back the end of a key with a time to live. */
  cancel: () => void;
}

/** A store that ends with its process. */
export class MemoryMetadata implements Metadata {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Kept>();
  readonly #watchers = new Set<(key: string) => void>();
  #version = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async get(key: string): Promise<MetadataEntry | undefined> {
    return this.#entries.get(key);
  }

  async list(prefix: string): Promise<readonly MetadataEntry[]> {
    const found = [...this.#entries.values()].filter(({ key }) => key.startsWith(prefix));
    return found.sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  async commit({ compare, put = [], remove = [] }: Transaction): Promise<boolean> {
    for (const { key, version } of compare) if ((this.#entries.get(key)?.version ?? 0) !== version) return false;
    const version = ++this.#version;
    for (const key of remove) this.#remove(key);
    for (const { key, value, ttlMs } of put) {
      this.#entries.get(key)?.cancel();
      this.#entries.set(key, { key, value, version, cancel: this.#endIn(key, ttlMs) });
      this.#tell(key);
    }
    return true;
  }

  async renew(key: string, version: number, ttlMs: number): Promise<boolean> {
    const entry = this.#entries.get(key);
    if (entry?.version !== version) return false;
    entry.cancel();
    entry.cancel = this.#endIn(key, ttlMs);
    return true;
  }

  watch(prefix: string, onChange: (key: string) => void): () => void {
    const watcher = (key: string) => {
      if (key.startsWith(prefix)) onChange(key);
    };
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  async close(): Promise<void> {
    for (const { cancel } of this.#entries.values()) cancel();
    this.#watchers.clear();
  }

  #endIn(key: string, ttlMs: number | undefined): () => void {
    if (ttlMs === undefined) return () => {};
    return this.#clock.wakeAt(this.#clock.nowNs() + ttlMs * NS_PER_MS, () => this.#remove(key));
  }

  #remove(key: string): void {
    this.#entries.get(key)?.cancel();
    if (this.#entries.delete(key)) this.#tell(key);
  }

  #tell(key: string): void {
    for (const watcher of [...this.#watchers]) watcher(key);
  }
}
