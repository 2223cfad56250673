/** The snapshot file is replaced whole, so it is consistent whenever the owner dies. */

import { createReadStream } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { RoceError, whyUnreadable, whyUnwritable } from 'rocev2/internal/core';
import { decodeSnapshot, type Snapshot } from './snapshot.js';

const READ_BYTES = 1 << 20;

/** Two owners must not share it. */
export class SnapshotFile {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

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

  /** Durable when it resolves: the bytes, and then the name. Rejects with ERR_ROCE_IO; the file is then what it was. */
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
