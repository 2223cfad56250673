/**
 * Numbers the transactions of the metadata, so that an older copy of it is recognized. Each start of a manager begins a
 * branch with a random name, and each transaction has the next number, as offsets and leader epochs of Kafka (KIP-101).
 * A version that is not in the history was made by transactions that this copy of the metadata does not have.
 */

import type { Metadata, MetadataEntry, Transaction } from './metadata.js';

/** A state of the metadata: the last transaction, and the branch that it is in. */
export interface MetadataVersion {
  readonly branch: string;
  readonly number: number;
}

interface Branch {
  readonly branch: string;
  /** The last transaction before it. */
  readonly from: number;
}

const HISTORY_KEY = 'history';
const VERSION_KEY = 'version';
const ADOPTED_KEY = 'adopted';
const BRANCHES_MAX = 500;

export class MetadataHistory implements Metadata {
  readonly #metadata: Metadata;
  #branches: readonly Branch[] = [];
  /** States of lost copies of the metadata, from which it was rebuilt. */
  #adopted: readonly MetadataVersion[] = [];
  #begun = 0;
  #committed = 0;

  constructor(metadata: Metadata) {
    this.#metadata = metadata;
  }

  /** Begins a branch; before that nothing is committed. `branch`: a random name. */
  async begin(branch: string): Promise<void> {
    for (;;) {
      const keys = [VERSION_KEY, HISTORY_KEY, ADOPTED_KEY];
      const [last, history, adopted] = await Promise.all(keys.map((key) => this.#metadata.get(key)));
      this.#adopted = adopted === undefined ? [] : (JSON.parse(adopted.value) as MetadataVersion[]);
      const from = last === undefined ? 0 : (JSON.parse(last.value) as MetadataVersion).number;
      const old = history === undefined ? [] : (JSON.parse(history.value) as Branch[]);
      const branches = [...old, { branch, from }].slice(-BRANCHES_MAX);
      const version = await this.#metadata.commit({
        compare: [
          { key: VERSION_KEY, version: last?.version ?? 0 },
          { key: HISTORY_KEY, version: history?.version ?? 0 },
        ],
        put: [
          { key: VERSION_KEY, value: JSON.stringify({ branch, number: from + 1 }) },
          { key: HISTORY_KEY, value: JSON.stringify(branches) },
        ],
      });
      if (version === 0) continue;
      this.#branches = branches;
      this.#begun = from + 1;
      this.#committed = from + 1;
      return;
    }
  }

  /** That of the last transaction. */
  get version(): MetadataVersion {
    return { branch: this.#branches.at(-1)!.branch, number: this.#committed };
  }

  /** Whether all transactions of that state are in this metadata. Older ones than it remembers count as such. */
  has({ branch, number }: MetadataVersion): boolean {
    if (this.#adopted.some((one) => one.branch === branch && number <= one.number)) return true;
    const at = this.#branches.findIndex((one) => one.branch === branch);
    if (at < 0) return number <= this.#branches[0].from;
    const end = at + 1 < this.#branches.length ? this.#branches[at + 1].from : this.#committed;
    return number <= end;
  }

  /** The metadata was rebuilt from nodes that have seen these states: it counts as later than all of them. */
  async accept(seen: readonly MetadataVersion[]): Promise<void> {
    const adopted = [...this.#adopted, ...seen.filter((version) => !this.has(version))].slice(-BRANCHES_MAX);
    this.#begun = Math.max(this.#begun, ...seen.map(({ number }) => number));
    await this.commit({ compare: [], put: [{ key: ADOPTED_KEY, value: JSON.stringify(adopted) }] });
    this.#adopted = adopted;
  }

  get(key: string): Promise<MetadataEntry | undefined> {
    return this.#metadata.get(key);
  }

  list(prefix: string): Promise<readonly MetadataEntry[]> {
    return this.#metadata.list(prefix);
  }

  /** A transaction that does not happen leaves its number out. */
  async commit({ compare, put = [], remove = [] }: Transaction): Promise<number> {
    const number = ++this.#begun;
    const value = JSON.stringify({ branch: this.version.branch, number });
    const version = await this.#metadata.commit({ compare, put: [...put, { key: VERSION_KEY, value }], remove });
    if (version > 0) this.#committed = Math.max(this.#committed, number);
    return version;
  }

  renew(key: string, version: number, ttlMs: number): Promise<boolean> {
    return this.#metadata.renew(key, version, ttlMs);
  }

  watch(prefix: string, onChange: (key: string) => void): () => void {
    return this.#metadata.watch(prefix, onChange);
  }

  close(): Promise<void> {
    return this.#metadata.close();
  }
}
