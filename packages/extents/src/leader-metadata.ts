/**
 * The store as a leading manager uses it. Each transaction compares the version of the leader's key, so that a deposed
 * manager changes nothing. Each also writes its own mark and compares the previous one, so that a lost response can be
 * resolved: the leader reads the mark, and if it is another one, replaces it, after which the transaction can never
 * happen.
 */

import { type Clock, NS_PER_MS, PromiseMutex, pause } from 'rocev2/internal/core';
import type { Metadata, MetadataEntry, Transaction } from './metadata.js';

export const LEADER_KEY = 'leader';
const MARK_KEY = 'last-change';
/** Of these two keys, and no others. */
const TERM_PREFIX = 'l';

export interface LeaderMetadataParts {
  readonly store: Metadata;
  readonly clock: Clock;
  /** Version of the leader's key: names the term, and is never that of another one. */
  readonly term: number;
  readonly retryMs: number;
  isHeld(): boolean;
  refusal(): Error;
}

/** After the term every call rejects. */
export class LeaderMetadata implements Metadata {
  readonly #parts: LeaderMetadataParts;
  /** Version of the mark; undefined before it has been read. */
  #marked: number | undefined;
  #marks = 0;
  #isOver = false;
  readonly #commits = new PromiseMutex();

  constructor(parts: LeaderMetadataParts) {
    this.#parts = parts;
  }

  get isOver(): boolean {
    this.#isOver ||= !this.#parts.isHeld();
    return this.#isOver;
  }

  end(): void {
    this.#isOver = true;
  }

  async get(key: string): Promise<MetadataEntry | undefined> {
    this.#check();
    return this.#parts.store.get(key);
  }

  async list(prefix: string): Promise<readonly MetadataEntry[]> {
    this.#check();
    return this.#parts.store.list(prefix);
  }

  commit(transaction: Transaction): Promise<number> {
    return this.#commits.run(() => this.#commit(transaction));
  }

  async renew(key: string, version: number, ttlMs: number): Promise<boolean> {
    this.#check();
    return this.#parts.store.renew(key, version, ttlMs);
  }

  watch(prefix: string, onChange: (key: string) => void): () => void {
    return this.#parts.store.watch(prefix, onChange);
  }

  async close(): Promise<void> {
    this.end();
  }

  /**
   * Resolves if this manager led when it was called, by the store; rejects, and ends the term, if another one may have
   * led, or the store was restored from an older snapshot.
   */
  async confirm(): Promise<void> {
    this.#check();
    await this.checkTerm();
    this.#check();
  }

  /** Asks the store whose term it is, and whether it still has the last mark: a restored store may not. @internal */
  async checkTerm(): Promise<void> {
    const { store, term } = this.#parts;
    const marked = this.#marked ?? 0;
    const found = new Map((await store.list(TERM_PREFIX)).map(({ key, version }) => [key, version]));
    if (found.get(LEADER_KEY) === term && (found.get(MARK_KEY) ?? 0) >= marked) return;
    this.end();
    this.#check();
  }

  /** What each transaction compares in addition to its own versions. @internal */
  fences(): Transaction['compare'] {
    return [
      { key: LEADER_KEY, version: this.#parts.term },
      { key: MARK_KEY, version: this.#marked! },
    ];
  }

  #check(): void {
    if (this.isOver) throw this.#parts.refusal();
  }

  async #commit(transaction: Transaction): Promise<number> {
    const { store } = this.#parts;
    for (;;) {
      this.#check();
      this.#marked ??= (await store.get(MARK_KEY))?.version ?? 0;
      const mark = `${this.#parts.term}.${++this.#marks}`;
      const version = await this.#outcome(this.#marking(transaction, mark), mark);
      if (version === undefined) continue; // It has not happened, and never will.
      if (version > 0) {
        this.#marked = version;
        return version;
      }
      await this.checkTerm(); // Otherwise one of its versions has changed.
      return 0;
    }
  }

  #marking(transaction: Transaction, mark: string): Transaction {
    return {
      ...transaction,
      compare: [...transaction.compare, ...this.fences()],
      put: [...(transaction.put ?? []), { key: MARK_KEY, value: mark }],
    };
  }

  /** As `commit` of a store, and undefined if it is not in the log and can no longer be committed. */
  async #outcome(marked: Transaction, mark: string): Promise<number | undefined> {
    try {
      return await this.#parts.store.commit(marked);
    } catch {
      return this.resolve(mark);
    }
  }

  /** Finds out what became of the transaction with this mark. Rejects when the term ends before that. @internal */
  async resolve(mark: string): Promise<number | undefined> {
    const { store, clock, retryMs } = this.#parts;
    const instead = `not ${mark}`;
    for (;;) {
      this.#check();
      try {
        const last = await store.get(MARK_KEY);
        if (last?.value === mark) return last.version;
        const isReplaced = last?.value === instead;
        const fence = { compare: this.fences(), put: [{ key: MARK_KEY, value: instead }] };
        const version = isReplaced ? last.version : await store.commit(fence);
        if (version > 0) {
          this.#marked = version;
          return undefined;
        }
        await this.checkTerm();
      } catch {
        await pause(clock, retryMs * NS_PER_MS);
      }
    }
  }
}
