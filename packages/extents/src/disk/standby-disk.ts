/**
 * A disk for a server that stays up when another owner takes over: requests fail with `NotOwnerError` until the disk is
 * free, then it is owned and read again.
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
  readonly retryMs: number;
  readonly reopen: () => Promise<StreamDisk | undefined>;
  readonly onNotice: (notice: string) => void;
}

export interface Serving {
  readonly address: string;
  readonly onOwnedAgain: () => Promise<void>;
}

export class StandbyDisk implements BlockDevice {
  readonly blockBytes = 1;
  readonly #parts: StandbyParts;
  #disk: StreamDisk;
  #lost: NotOwnerError | undefined;
  #serving: Serving | undefined;
  #isClosed = false;
  #close: () => void = () => {};
  readonly #closing = new Promise<void>((resolve) => {
    this.#close = resolve;
  });
  readonly #standby: Promise<void>;

  constructor(disk: StreamDisk, parts: StandbyParts) {
    this.#disk = disk;
    this.#parts = parts;
    this.#standby = this.#standBy();
  }

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
      this.#lost = this.#disk.notOwner ?? new NotOwnerError(`the disk '${name}' now has another owner`);
      this.#parts.onNotice(`${this.#lost.message.replace(/^EIO: /, '')}; waiting until it has no owner`);
      await this.#disk.close();
      const next = await this.#waitForDisk();
      if (next === undefined) return;
      this.#disk = next;
      this.#lost = undefined;
      if (this.#serving !== undefined) await next.announce(this.#serving.address);
      this.#parts.onNotice(`the disk '${name}' is ours again`);
    }
  }

  async #waitForDisk(): Promise<StreamDisk | undefined> {
    const { clock, retryMs, reopen } = this.#parts;
    for (;;) {
      await Promise.race([pause(clock, retryMs * NS_PER_MS), this.#closing]);
      if (this.#isClosed) return undefined;
      const disk = await reopen().catch(() => undefined);
      if (disk === undefined) continue;
      try {
        if (!this.#isClosed) {
          await this.#serving?.onOwnedAgain();
          return disk;
        }
      } catch {}
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
