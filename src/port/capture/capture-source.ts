/** Where the bytes of a capture come from. */

import { RoceError } from '../../core/errors.js';
import { whyUnreadable } from '../../core/file-errors.js';

export interface CaptureSource {
  /** In messages. */
  readonly name: string;
  readonly sizeBytes: number;
  /** Reads the next bytes into `buffer` from `offset` on, at most `length`. Resolves to their number; 0 at the end. */
  read(buffer: Uint8Array, offset: number, length: number): Promise<number>;
  close(): Promise<void>;
}

export class BlobSource implements CaptureSource {
  readonly name: string;
  readonly sizeBytes: number;
  readonly #blob: Blob;
  #position = 0;

  constructor(blob: Blob) {
    this.#blob = blob;
    this.sizeBytes = blob.size;
    this.name = 'name' in blob ? String(blob.name) : 'the capture';
  }

  async read(buffer: Uint8Array, offset: number, length: number): Promise<number> {
    const bytes = new Uint8Array(await this.#blob.slice(this.#position, this.#position + length).arrayBuffer());
    buffer.set(bytes, offset);
    this.#position += bytes.length;
    return bytes.length;
  }

  async close(): Promise<void> {}
}

export function unreadable(name: string, cause: unknown): RoceError {
  return new RoceError('ERR_ROCE_IO', `cannot read ${name}: ${whyUnreadable(cause)}`, undefined, { cause });
}
