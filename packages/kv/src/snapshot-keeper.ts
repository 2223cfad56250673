/** When an owner writes its snapshot: at fixed times if something has changed, when it is told to, and at its end. */

import process from 'node:process';
import { type Clock, NS_PER_MS, PromiseMutex } from 'rocev2/internal/core';
import { encodeSnapshot, type Snapshot } from './snapshot.js';
import type { SnapshotFile } from './snapshot-file.js';
import type { KvStore } from './store.js';
import { Writes } from './writes.js';

/** What snapshots are written to. */
export type SnapshotPlace = Pick<SnapshotFile, 'save'>;

/** What a keeper needs. */
export interface SnapshotKeeperParts {
  /** Where snapshots go. */
  readonly place: SnapshotPlace;
  /** Milliseconds between the end of a snapshot and the next one. */
  readonly everyMs: number;
  /** Of the owner. */
  readonly clock: Clock;
  /** The time of day, milliseconds since 1970. */
  readonly wallMs: () => number;
}

/** Snapshots of one store. */
export class SnapshotKeeper {
  readonly #store: KvStore;
  readonly #parts: SnapshotKeeperParts;
  #stopTimer: () => void = () => {};
  /** Snapshots follow one another. */
  readonly #saving = new PromiseMutex();
  #savedChanges: number;
  #hasWarned = false;
  #isClosed = false;

  /** The store is as it was saved last. */
  constructor(store: KvStore, parts: SnapshotKeeperParts) {
    this.#store = store;
    this.#parts = parts;
    this.#savedChanges = store.changes;
  }

  /** From now on a snapshot is written every `everyMs` in which something has changed. */
  start(): void {
    this.#saveLater();
  }

  #saveLater(): void {
    const { clock, everyMs } = this.#parts;
    this.#stopTimer = clock.wakeAt(clock.nowNs() + everyMs * NS_PER_MS, async () => {
      await this.#saveIfChanged().catch((error: Error) => this.#warn(error));
      if (!this.#isClosed) this.#saveLater();
    });
  }

  /** Nobody waits for it, but it must not go unseen: the values would be lost with the owner. */
  #warn(error: Error): void {
    if (!this.#hasWarned) process.emitWarning(error);
    this.#hasWarned = true;
  }

  async #saveIfChanged(): Promise<void> {
    if (this.#store.changes !== this.#savedChanges) await this.save();
  }

  /** Writes what the store has now. Durable when it resolves. Rejects with ERR_ROCE_IO; the snapshot before is still there then. */
  save(): Promise<void> {
    return this.#saving.run(async () => {
      const { changes } = this.#store;
      const { place, clock, wallMs } = this.#parts;
      const time = { nowMs: clock.nowNs() / NS_PER_MS, wallMs: wallMs() };
      await place.save(encodeSnapshot(this.#store.records(), this.#store.geometry, time));
      this.#savedChanges = changes;
      this.#hasWarned = false;
    });
  }

  /** Writes a last snapshot if something has changed. Rejects as {@link save} does. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopTimer();
    await this.#saving.settled;
    await this.#saveIfChanged();
  }
}

/**
 * Fills an empty store with a snapshot, less what has expired since. Whatever a store had, one with as many buckets and the same seed takes. Rejects as
 * `records` does, and with ERR_ROCE_LIMIT or ERR_ROCE_OUT_OF_RANGE if the store is too small.
 */
export async function restore(
  store: KvStore,
  { buckets, seed, records }: Snapshot,
  { clock, wallMs }: Pick<SnapshotKeeperParts, 'clock' | 'wallMs'>,
): Promise<void> {
  const writes = new Writes(clock);
  const isFirstFit = buckets === store.geometry.buckets && seed === store.geometry.seed;
  for await (const { key, value, expiresMs } of records) {
    const ttlMs = expiresMs === 0 ? undefined : expiresMs - wallMs();
    if (ttlMs === undefined || ttlMs > 0) await writes.run(() => store.set(key, value, { ttlMs, isFirstFit }));
  }
}
