import { type Clock, NS_PER_MS, wakeWhenDue } from 'rocev2/internal/core';
import type { MetadataEntry, Transaction } from './metadata.js';

export interface MetadataPut {
  readonly key: string;
  readonly value: string;
  readonly ttlMs?: number;
}

export interface MetadataChange {
  readonly version: number;
  readonly put: readonly MetadataPut[];
  readonly remove: readonly string[];
}

interface Kept extends MetadataEntry {
  readonly ttlMs: number | undefined;
  dueNs: number;
  cancel: () => void;
}

export class MetadataTable {
  readonly #clock: Clock;
  readonly #onDue: (key: string, version: number) => void;
  readonly #entries = new Map<string, Kept>();
  readonly #watchers = new Set<(key: string) => void>();
  #version = 0;

  constructor(clock: Clock, onDue: (key: string, version: number) => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  get version(): number {
    return this.#version;
  }

  get(key: string): MetadataEntry | undefined {
    return this.#entries.get(key);
  }

  list(prefix: string): readonly MetadataEntry[] {
    const found = [...this.#entries.values()].filter(({ key }) => key.startsWith(prefix));
    return found.sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  puts(): ReadonlyArray<MetadataPut & { readonly version: number }> {
    return [...this.#entries.values()].map(({ key, value, version, ttlMs }) => ({
      key,
      value,
      version,
      ...(ttlMs !== undefined && { ttlMs }),
    }));
  }

  holds(compare: Transaction['compare']): boolean {
    return compare.every(({ key, version }) => (this.#entries.get(key)?.version ?? 0) === version);
  }

  isDue(key: string, version: number): boolean {
    const entry = this.#entries.get(key);
    return entry?.version === version && entry.dueNs <= this.#clock.nowNs();
  }

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

  /** False: it has another version, or has vanished. */
  renew(key: string, version: number, ttlMs: number): boolean {
    const entry = this.#entries.get(key);
    if (entry?.version !== version) return false;
    entry.cancel();
    Object.assign(entry, this.#endAfter(key, version, ttlMs));
    return true;
  }

  watch(prefix: string, onChange: (key: string) => void): () => void {
    const watcher = (key: string) => {
      if (key.startsWith(prefix)) onChange(key);
    };
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  close(): void {
    for (const { cancel } of this.#entries.values()) cancel();
    this.#watchers.clear();
  }

  #endAfter(key: string, version: number, ttlMs: number | undefined): Pick<Kept, 'dueNs' | 'cancel'> {
    if (ttlMs === undefined) return { dueNs: Number.POSITIVE_INFINITY, cancel: () => {} };
    const dueNs = this.#clock.nowNs() + ttlMs * NS_PER_MS;
    return { dueNs, cancel: wakeWhenDue(this.#clock, dueNs, () => this.#onDue(key, version)) };
  }

  #tell(key: string): void {
    for (const watcher of [...this.#watchers]) watcher(key);
  }
}
