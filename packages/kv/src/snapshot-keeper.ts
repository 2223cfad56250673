import process from 'node:process';
import { type Clock, NS_PER_MS, PromiseMutex } from 'rocev2/internal/core';
import { encodeSnapshot, type Snapshot } from './snapshot.js';
import type { SnapshotFile } from './snapshot-file.js';
import type { KvStore } from './store.js';
import { Writes } from './writes.js';

export type SnapshotPlace = Pick<SnapshotFile, 'save'>;

export interface SnapshotKeeperParts {
  readonly place: SnapshotPlace;
  readonly everyMs: number;
  readonly clock: Clock;
  readonly wallMs: () => number;
  /** Undefined: failures are warnings of the process. */
  readonly onNotice?: ((notice: string) => void) | undefined;
}

export class SnapshotKeeper {
  readonly #store: KvStore;
  readonly #parts: SnapshotKeeperParts;
  #stopTimer: () => void = () => {};
  readonly #saving = new PromiseMutex();
  #savedChanges: number;
  #hasWarned = false;
  #isClosed = false;

  constructor(store: KvStore, parts: SnapshotKeeperParts) {
    this.#store = store;
    this.#parts = parts;
    this.#savedChanges = store.changes;
  }

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

  /** Nothing awaits it, but a failure must not go unseen: the values would be lost with the owner. */
  #warn(error: Error): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const { onNotice } = this.#parts;
    if (onNotice === undefined) process.emitWarning(error);
    else onNotice(`the snapshot was not saved: ${error.message}`);
  }

  async #saveIfChanged(): Promise<void> {
    if (this.#store.changes !== this.#savedChanges) await this.save();
  }

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

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopTimer();
    await this.#saving.settled;
    await this.#saveIfChanged();
  }
}

/** A store with as many buckets and the same seed takes all entries of another. */
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
