/** The values of a metadata store in memory: versions, times to live and watchers. Who keeps them durable decides when a change is applied. */

import { type Clock, NS_PER_MS } from 'rocev2/internal/core';
import type { MetadataEntry, Transaction } from './metadata.js';

/** A value to write. */
export interface MetadataPut {
  /** Name of the value. */
  readonly key: string;
  /** The text. */
  readonly value: string;
  /** The key vanishes after this time, unless it is renewed. */
  readonly ttlMs?: number;
}

/** A transaction that has been decided. */
export interface MetadataChange {
  /** Version of all values that it writes. */
  readonly version: number;
  /** Values written. */
  readonly put: readonly MetadataPut[];
  /** Keys deleted before that. */
  readonly remove: readonly string[];
}

interface Kept extends MetadataEntry {
  /** As it was written. */
  readonly ttlMs: number | undefined;
  /** When it vanishes. */
  dueNs: number;
  /** Takes that back. */
  cancel: () => void;
}

/** The values of one store. */
export class MetadataTable {
  readonly #clock: Clock;
  readonly #onDue: (key: string, version: number) => void;
  readonly #entries = new Map<string, Kept>();
  readonly #watchers = new Set<(key: string) => void>();
  #version = 0;

  /** `onDue`: the time to live of a key has passed, and somebody has to remove it. */
  constructor(clock: Clock, onDue: (key: string, version: number) => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  /** Version of the last change. */
  get version(): number {
    return this.#version;
  }

  /** One value. */
  get(key: string): MetadataEntry | undefined {
    return this.#entries.get(key);
  }

  /** All values whose keys begin so, by key. */
  list(prefix: string): readonly MetadataEntry[] {
    const found = [...this.#entries.values()].filter(({ key }) => key.startsWith(prefix));
    return found.sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  /** All values, as they were written, with their versions. */
  puts(): ReadonlyArray<MetadataPut & { readonly version: number }> {
    return [...this.#entries.values()].map(({ key, value, version, ttlMs }) => ({
      key,
      value,
      version,
      ...(ttlMs !== undefined && { ttlMs }),
    }));
  }

  /** Whether all versions hold. */
  holds(compare: Transaction['compare']): boolean {
    return compare.every(({ key, version }) => (this.#entries.get(key)?.version ?? 0) === version);
  }

  /** Whether the key has this version, and its time to live has passed. */
  isDue(key: string, version: number): boolean {
    const entry = this.#entries.get(key);
    return entry?.version === version && entry.dueNs <= this.#clock.nowNs();
  }

  /** Makes a change, and tells who watches. Times to live begin now. */
  apply({ version, put, remove }: MetadataChange): void {
    this.#version = Math.max(this.#version, version);
    for (const key of remove) {
      this.#entries.get(key)?.cancel();
      if (this.#entries.delete(key)) this.#tell(key);
    }
    for (const { key, value, ttlMs } of put) {
      this.#entries.get(key)?.cancel();
      this.#entries.set(key, { key, value, version, ttlMs, ...this.#endAfter(key, version, ttlMs) });
      this.#tell(key);
    }
  }

  /** Lets a key live for so long from now on. False: it has another version, or has vanished. */
  renew(key: string, version: number, ttlMs: number): boolean {
    const entry = this.#entries.get(key);
    if (entry?.version !== version) return false;
    entry.cancel();
    Object.assign(entry, this.#endAfter(key, version, ttlMs));
    return true;
  }

  /** Calls back after changes of keys that begin so. The result ends it. */
  watch(prefix: string, onChange: (key: string) => void): () => void {
    const watcher = (key: string) => {
      if (key.startsWith(prefix)) onChange(key);
    };
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Ends all timers and watches. */
  close(): void {
    for (const { cancel } of this.#entries.values()) cancel();
    this.#watchers.clear();
  }

  #endAfter(key: string, version: number, ttlMs: number | undefined): Pick<Kept, 'dueNs' | 'cancel'> {
    if (ttlMs === undefined) return { dueNs: Number.POSITIVE_INFINITY, cancel: () => {} };
    const dueNs = this.#clock.nowNs() + ttlMs * NS_PER_MS;
    return { dueNs, cancel: this.#clock.wakeAt(dueNs, () => this.#onDue(key, version)) };
  }

  #tell(key: string): void {
    for (const watcher of [...this.#watchers]) watcher(key);
  }
}
