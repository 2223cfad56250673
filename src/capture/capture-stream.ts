/**
 * Reads a capture file of any size in bounded memory: a chunk at a time, whose packets are views into it. The formats are those of
 * capture-reader.ts, and so is the treatment of damage.
 */

import { type FileHandle, open } from 'node:fs/promises';
import { RoceError } from '../core/errors.js';
import { whyUnreadable } from '../core/file-errors.js';
import { type CaptureDamage, type CapturedPacket, type CaptureParser, parserOf } from './capture-reader.js';

const CHUNK_BYTES = 4 * 1024 * 1024;
/** No block of a capture is longer: a packet has at most 256 KiB, and options are short. */
const BLOCK_BYTES_MAX = 64 * 1024 * 1024;

/** A capture file that is being read. */
export class CaptureStream {
  /** Of the file, when it was opened. */
  readonly sizeBytes: number;
  /** Undefined while reading, and after a whole file. */
  damage: CaptureDamage | undefined;
  readonly #handle: FileHandle;
  readonly #path: string;

  private constructor(path: string, handle: FileHandle, sizeBytes: number) {
    this.#path = path;
    this.#handle = handle;
    this.sizeBytes = sizeBytes;
  }

  /** Throws ERR_ROCE_IO, with the file's name, if it cannot be read. */
  static async open(path: string): Promise<CaptureStream> {
    try {
      const handle = await open(path, 'r');
      return new CaptureStream(path, handle, (await handle.stat()).size);
    } catch (cause) {
      throw unreadable(path, cause);
    }
  }

  /**
   * The packets, a chunk of the file at a time; those of one chunk, and their bytes, are valid until the next is asked for. Iterate once; closes the
   * file at the end. Throws ERR_ROCE_IO when the first bytes are those of no capture format, or reading fails.
   */
  async *chunks(): AsyncGenerator<Iterable<CapturedPacket>, void> {
    let buffer = Buffer.allocUnsafe(CHUNK_BYTES);
    let parser: CaptureParser | undefined;
    let used = 0;
    let offset = 0;
    try {
      for (let isLast = false; !isLast; ) {
        if (used === buffer.length) buffer = this.#grown(buffer);
        const { bytesRead } = await this.#handle.read(buffer, used, buffer.length - used, null);
        used += bytesRead;
        isLast = bytesRead === 0;
        if (used < buffer.length && !isLast) continue; // a short read, as pipes give
        const bytes = new Uint8Array(buffer.buffer, buffer.byteOffset, used);
        parser ??= parserOf(bytes);
        yield parser.packets(bytes, isLast);
        if (parser.damage !== undefined) {
          this.damage = { ...parser.damage, offset: offset + parser.damage.offset };
          return;
        }
        buffer.copyWithin(0, parser.consumed, used);
        offset += parser.consumed;
        used -= parser.consumed;
      }
    } catch (cause) {
      throw cause instanceof RoceError ? cause : unreadable(this.#path, cause);
    } finally {
      await this.#handle.close();
    }
  }

  #grown(buffer: Buffer): Buffer<ArrayBuffer> {
    if (buffer.length >= BLOCK_BYTES_MAX) {
      throw new RoceError('ERR_ROCE_IO', `${this.#path} has a block of more than 64 MiB, which is no packet`);
    }
    const larger = Buffer.allocUnsafe(2 * buffer.length);
    buffer.copy(larger);
    return larger;
  }
}

function unreadable(path: string, cause: unknown): RoceError {
  const why = whyUnreadable(cause as NodeJS.ErrnoException);
  return new RoceError('ERR_ROCE_IO', `cannot read ${path}: ${why}`, undefined, { cause });
}
