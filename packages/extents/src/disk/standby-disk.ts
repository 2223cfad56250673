/**
 * A disk for a server that goes on when another owner takes its disk over: until nobody has the disk, every request fails with a `NotOwnerError`; then it is owned here again,
 * and read anew.
 */

import { type Clock, NS_PER_MS, pause } from 'rocev2/internal/core';
import {
  type BlockDevice,
  type BlockExtent,
  type DiskIdentity,
  NotOwnerError,
  type WriteOptions,
} from 'rocev2/internal/disk';
import type { StreamDisk } from './stream-disk.js';

/** What it is made of. */
export interface StandbyParts {
  /** Measures all times. */
  readonly clock: Clock;
  /** Between two attempts to own the disk again, milliseconds. */
  readonly retryMs: number;
  /** Becomes its owner again. Resolves with undefined while somebody else is. */
  readonly reopen: () => Promise<StreamDisk | undefined>;
  /** Takes sentences for the operator: it has lost the disk, or has it again. */
  readonly onNotice: (notice: string) => void;
}

/** Where a disk is served. */
export interface Serving {
  /** What its manager is told, `HOST:PORT`. */
  readonly address: string;
  /** Ends what clients had of the disk before it was lost. The disk is owned again, and answers when this has resolved. */
  readonly onOwnedAgain: () => Promise<void>;
}

/** A disk that its program owns, or waits for. */
export class StandbyDisk implements BlockDevice {
  readonly blockBytes = 1;
  readonly #parts: StandbyParts;
  #disk: StreamDisk;
  /** While it is not owned here. */
  #lost: NotOwnerError | undefined;
  #serving: Serving | undefined;
  #isClosed = false;
  #close: () => void = () => {};
  readonly #closing = new Promise<void>((resolve) => {
    this.#close = resolve;
  });
  readonly #standby: Promise<void>;

  /** `disk` is owned now. Closing closes it. */
  constructor(disk: StreamDisk, parts: StandbyParts) {
    this.#disk = disk;
    this.#parts = parts;
    this.#standby = this.#standBy();
  }

  /** Tells the manager where the disk is served, now and each time that it is owned again. */
  async serveAt(serving: Serving): Promise<void> {
    this.#serving = serving;
    await this.#disk.announce(serving.address);
  }

  get notOwner(): NotOwnerError | undefined {
    return this.#lost ?? this.#disk.notOwner;
  }

  get identity(): DiskIdentity {
    return this.#disk.identity;
  }

  get writeVerifier(): bigint {
    return this.#disk.writeVerifier;
  }

  get sizeBytes(): number {
    return this.#disk.sizeBytes;
  }

  get readOnly(): boolean {
    return this.#disk.readOnly;
  }

  get #owned(): StreamDisk {
    if (this.#lost !== undefined) throw this.#lost;
    return this.#disk;
  }

  async #standBy(): Promise<void> {
    for (;;) {
      await Promise.race([this.#disk.ended, this.#closing]);
      if (this.#isClosed) return;
      const { name } = this.#disk.metadata;
      this.#lost = this.#disk.notOwner ?? new NotOwnerError(`the disk '${name}' is not ours any more`);
      this.#parts.onNotice(`${this.#lost.message.replace(/^EIO: /, '')}; standing by until nobody has it`);
      await this.#disk.close();
      const next = await this.#waitForDisk();
      if (next === undefined) return;
      this.#disk = next;
      this.#lost = undefined;
      if (this.#serving !== undefined) await next.announce(this.#serving.address);
      this.#parts.onNotice(`the disk '${name}' is ours again`);
    }
  }

  /** Undefined: it has been closed meanwhile, or nobody here serves it any more. */
  async #waitForDisk(): Promise<StreamDisk | undefined> {
    const { clock, retryMs, reopen } = this.#parts;
    for (;;) {
      await Promise.race([pause(clock, retryMs * NS_PER_MS), this.#closing]);
      if (this.#isClosed) return undefined;
      const disk = await reopen().catch(() => undefined); // Manager or nodes are out of reach: later.
      if (disk === undefined) continue;
      try {
        if (!this.#isClosed) {
          await this.#serving?.onOwnedAgain();
          return disk;
        }
      } catch {} // It is not served any more.
      await disk.close();
      return undefined;
    }
  }

  async read(offset: number, length: number, into: Uint8Array): Promise<void> {
    await this.#owned.read(offset, length, into);
  }

  async readChecked(offset: number, length: number, into: Uint8Array): Promise<Uint32Array> {
    return this.#owned.readChecked(offset, length, into);
  }

  async write(offset: number, data: Uint8Array, options?: WriteOptions): Promise<void> {
    await this.#owned.write(offset, data, options);
  }

  async flush(): Promise<void> {
    await this.#owned.flush();
  }

  async trim(offset: number, length: number): Promise<void> {
    await this.#owned.trim(offset, length);
  }

  async writeZeroes(offset: number, length: number): Promise<void> {
    await this.#owned.writeZeroes(offset, length);
  }

  async blockStatus(offset: number, length: number): Promise<readonly BlockExtent[]> {
    return this.#owned.blockStatus(offset, length);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#close();
    await this.#standby;
    await this.#disk.close();
  }

  /** Same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
