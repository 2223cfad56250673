/** The snapshot of an owner in a file, which is replaced whole: it holds one moment, whenever its owner dies. */

import { createReadStream } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { RoceError, whyUnreadable, whyUnwritable } from 'rocev2/internal/core';
import { decodeSnapshot, type Snapshot } from './snapshot.js';

/** The records of a file are read in pieces of so many bytes. */
const READ_BYTES = 1 << 20;

/** The file of one owner. Two owners must not share it. */
export class SnapshotFile {
  /** Where it is. */
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /**
   * The snapshot in the file; undefined if there is no file yet. Rejects with ERR_ROCE_IO for a file that cannot be read, ERR_ROCE_MISMATCH and
   * ERR_ROCE_MALFORMED as `decodeSnapshot` does; so do its records.
   */
  async load(): Promise<Snapshot | undefined> {
    const stream = createReadStream(this.path, { highWaterMark: READ_BYTES });
    try {
      const snapshot = await decodeSnapshot(stream);
      return { ...snapshot, records: this.#named(snapshot.records) };
    } catch (cause) {
      stream.destroy();
      if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw this.#unloadable(cause);
    }
  }

  /** The records, with the name of the file in their errors. */
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

  /** Replaces the file. Durable when it resolves: the bytes, and then the name. Rejects with ERR_ROCE_IO; the file is then what it was. */
  async save(pieces: readonly Buffer[]): Promise<void> {
    const draft = `${this.path}.new`;
    try {
      await using file = await open(draft, 'w', 0o600);
      for (const piece of pieces) await file.writeFile(piece);
      await file.sync();
      await rename(draft, this.path);
      await using folder = await open(dirname(this.path), 'r');
      await folder.sync();
    } catch (cause) {
      const text = `cannot write the snapshot ${this.path}: ${whyUnwritable(cause)}`;
      throw new RoceError('ERR_ROCE_IO', text, 'the one before is still there', { cause });
    }
  }
}
