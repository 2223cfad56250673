import type { Clock } from 'rocev2/internal/core';
import type { Metadata, MetadataEntry, Transaction } from './metadata.js';
import { MetadataTable } from './metadata-table.js';

export class MemoryMetadata implements Metadata {
  readonly #table: MetadataTable;

  constructor(clock: Clock) {
    this.#table = new MetadataTable(clock, (key) =>
      this.#table.apply({ version: this.#table.version, put: [], remove: [key] }),
    );
  }

  async get(key: string): Promise<MetadataEntry | undefined> {
    return this.#table.get(key);
  }

  async list(prefix: string): Promise<readonly MetadataEntry[]> {
    return this.#table.list(prefix);
  }

  async commit({ compare, put = [], remove = [] }: Transaction): Promise<number> {
    if (!this.#table.holds(compare)) return 0;
    const version = this.#table.version + 1;
    this.#table.apply({ version, put, remove });
    return version;
  }

  async renew(key: string, version: number, ttlMs: number): Promise<boolean> {
    return this.#table.renew(key, version, ttlMs);
  }

  watch(prefix: string, onChange: (key: string) => void): () => void {
    return this.#table.watch(prefix, onChange);
  }

  async close(): Promise<void> {
    this.#table.close();
  }
}
