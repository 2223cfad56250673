/**
 * The snapshot file is replaced whole, so it is consistent whenever the owner dies. An owner keeps it locked, and does
 * not replace one that is not its own.
 */

import { constants } from 'node:fs';
import { access, type FileHandle, open, rename, stat, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { RoceError, whyUnreadable, whyUnwritable } from 'rocev2/internal/core';
import { lockFile } from 'rocev2/internal/driver';
import { decodeSnapshot, type Snapshot } from './snapshot.js';

const READ_BYTES = 1 << 20;
const DRAFT_FLAGS = constants.O_RDWR | constants.O_CREAT;

export class SnapshotFile implements AsyncDisposable {
  readonly path: string;
  /** The file that is at the path, open because it carries the lock; undefined: there is none yet. */
  #held: FileHandle | undefined;
  /** The next file, which carries the lock before there is a first one. */
  #draft: FileHandle | undefined;

  constructor(path: string) {
    this.path = path;
  }

  /** Rejects with ERR_ROCE_BUSY while another owner has the file (Linux with koffi). */
  async load(): Promise<Snapshot | undefined> {
    await this.close();
    let file: FileHandle;
    try {
      await access(dirname(this.path), constants.W_OK);
    } catch (cause) {
      throw this.#unwritable(cause);
    }
    try {
      file = await open(this.path, 'r');
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw this.#unloadable(cause);
      await this.#openDraft().catch((error: unknown) => {
        throw this.#unloadable(error);
      });
      return undefined;
    }
    try {
      await this.#lock(file);
      const snapshot = await decodeSnapshot(file.createReadStream({ highWaterMark: READ_BYTES, autoClose: false }));
      this.#held = file;
      return { ...snapshot, records: this.#named(snapshot.records) };
    } catch (cause) {
      await file.close();
      throw this.#unloadable(cause);
    }
  }

  get #draftPath(): string {
    return `${this.path}.new`;
  }

  async #openDraft(): Promise<FileHandle> {
    const file = await open(this.#draftPath, DRAFT_FLAGS, 0o600);
    try {
      await this.#lock(file);
    } catch (error) {
      await file.close();
      throw error;
    }
    this.#draft = file;
    return file;
  }

  async #lock(file: FileHandle): Promise<void> {
    if (await lockFile(file.fd)) return;
    throw new RoceError('ERR_ROCE_BUSY', 'another owner has it', 'end that owner, or name another file');
  }

  async *#named(records: Snapshot['records']): Snapshot['records'] {
    try {
      yield* records;
    } catch (cause) {
      throw this.#unloadable(cause);
    }
  }

  #unloadable(cause: unknown): RoceError {
    const why = cause instanceof RoceError ? cause.message : whyUnreadable(cause);
    const code = cause instanceof RoceError ? cause.code : 'ERR_ROCE_IO';
    return new RoceError(code, `cannot load the snapshot ${this.path}: ${why}`, undefined, { cause });
  }

  /**
   * Durable when it resolves: the bytes, and then the name. Rejects with ERR_ROCE_IO, with ERR_ROCE_BUSY while another
   * owner writes it, and with ERR_ROCE_MISMATCH if another file is at the path, such as a restored backup or the
   * snapshot of another owner; the file is then what it was.
   */
  async save(pieces: readonly Buffer[]): Promise<void> {
    try {
      await this.#expectOwn();
      const file = this.#draft ?? (await this.#openDraft());
      await file.truncate(0);
      let at = 0;
      for (const piece of pieces) at += (await file.write(piece, 0, piece.length, at)).bytesWritten;
      await file.sync();
      await rename(this.#draftPath, this.path);
      const before = this.#held;
      this.#held = file;
      this.#draft = undefined;
      await before?.close();
      await using folder = await open(dirname(this.path), 'r');
      await folder.sync();
    } catch (cause) {
      throw this.#unwritable(cause, cause instanceof RoceError ? undefined : 'the one before is still there');
    }
  }

  #unwritable(cause: unknown, hint?: string): RoceError {
    const isRoce = cause instanceof RoceError;
    const text = `cannot write the snapshot ${this.path}: ${isRoce ? cause.message : whyUnwritable(cause)}`;
    return new RoceError(isRoce ? cause.code : 'ERR_ROCE_IO', text, hint, { cause });
  }

  /** One that was removed is written again. */
  async #expectOwn(): Promise<void> {
    const there = await stat(this.path, { bigint: true }).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw error;
    });
    if (there === undefined) return;
    const own = await this.#held?.stat({ bigint: true });
    if (own?.ino === there.ino && own.dev === there.dev) return;
    throw new RoceError(
      'ERR_ROCE_MISMATCH',
      'the file was replaced since this owner began',
      'move that file away to have this owner write its own, or end this owner to begin with that file',
    );
  }

  async close(): Promise<void> {
    if (this.#draft !== undefined) await unlink(this.#draftPath).catch(() => {});
    await this.#draft?.close();
    await this.#held?.close();
    this.#draft = undefined;
    this.#held = undefined;
  }

  /** Same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
