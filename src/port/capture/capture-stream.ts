/** Reads a capture file of any size in bounded memory: a chunk at a time, whose packets are views into it. */

import { checkKind, checkText } from '../../core/arguments.js';
import { RoceError } from '../../core/errors.js';
import { openFileSource } from './capture-file.js';
import { parserOf } from './capture-reader.js';
import { BlobSource, type CaptureSource, unreadable } from './capture-source.js';
import type { CaptureDamage, CapturedPacket, CaptureParser } from './captured-packet.js';

const CHUNK_BYTES = 4 * 1024 * 1024;
/** Before the bytes of a chunk there is space for the block that the previous chunk has split. */
const HEAD_BYTES = 1024 * 1024;
const BUFFER_BYTES = HEAD_BYTES + CHUNK_BYTES;
/** No block of a capture is longer: a packet has at most 256 KiB, and options are short. */
const BLOCK_BYTES_MAX = 64 * 1024 * 1024;

interface Chunk {
  readonly buffer: Uint8Array<ArrayBuffer>;
  readonly count: number;
}

/** A capture file: pcap or pcapng, of any size. */
export class CaptureStream {
  /** Size of the file when it was opened. */
  readonly sizeBytes: number;
  /** Why the packets ended before the end of the file. Undefined: the whole file was read. */
  damage: CaptureDamage | undefined;
  readonly #source: CaptureSource;

  private constructor(source: CaptureSource) {
    this.#source = source;
    this.sizeBytes = source.sizeBytes;
  }

  /** Opens a file. Rejects with ERR_ROCE_IO if it cannot be read, with ERR_ROCE_UNSUPPORTED in a browser. */
  static async open(path: string): Promise<CaptureStream> {
    checkText('path', path);
    return new CaptureStream(await openFileSource(path));
  }

  /** A capture in memory, or a file that the user of a web page has chosen. */
  static of(blob: Blob): CaptureStream {
    checkKind('blob', blob, typeof blob?.slice === 'function' && typeof blob.size === 'number', 'a Blob');
    return new CaptureStream(new BlobSource(blob));
  }

  /**
   * The packets, a chunk of the file at a time; those of one chunk, and their bytes, are valid until the next is asked
   * for.
   */
  async *chunks(): AsyncGenerator<Iterable<CapturedPacket>, void> {
    let parser: CaptureParser | undefined;
    let tail = new Uint8Array(0);
    let spare = new Uint8Array(BUFFER_BYTES);
    let offset = 0;
    let reading = this.#read(new Uint8Array(BUFFER_BYTES));
    try {
      for (let isLast = false; !isLast; ) {
        const { buffer, count } = await reading;
        isLast = count < CHUNK_BYTES;
        const bytes = this.#joined(tail, buffer, count);
        if (!isLast) reading = this.#read(spare);
        parser ??= this.#parserOf(bytes);
        yield parser.packets(bytes, isLast);
        if (parser.damage !== undefined) {
          this.damage = { ...parser.damage, offset: offset + parser.damage.offset };
          return;
        }
        tail = bytes.subarray(parser.consumed);
        offset += parser.consumed;
        spare = buffer;
      }
    } catch (cause) {
      throw cause instanceof RoceError ? cause : unreadable(this.#source.name, cause);
    } finally {
      await reading.catch(() => {});
      await this.#source.close();
    }
  }

  #parserOf(bytes: Uint8Array): CaptureParser {
    try {
      return parserOf(bytes);
    } catch (cause) {
      throw new RoceError('ERR_ROCE_IO', `cannot read ${this.#source.name}: ${(cause as Error).message}`, undefined, {
        cause,
      });
    }
  }

  #read(buffer: Uint8Array<ArrayBuffer>): Promise<Chunk> {
    const reading = this.#fill(buffer);
    reading.catch(() => {});
    return reading;
  }

  async #fill(buffer: Uint8Array<ArrayBuffer>): Promise<Chunk> {
    let count = 0;
    while (count < CHUNK_BYTES) {
      const bytesRead = await this.#source.read(buffer, HEAD_BYTES + count, CHUNK_BYTES - count);
      if (bytesRead === 0) break;
      count += bytesRead; // a short read, as pipes give
    }
    return { buffer, count };
  }

  #joined(tail: Uint8Array, buffer: Uint8Array<ArrayBuffer>, count: number): Uint8Array<ArrayBuffer> {
    if (tail.length <= HEAD_BYTES) {
      const start = HEAD_BYTES - tail.length;
      buffer.set(tail, start);
      return buffer.subarray(start, HEAD_BYTES + count);
    }
    if (tail.length >= BLOCK_BYTES_MAX) {
      throw new RoceError('ERR_ROCE_IO', `${this.#source.name} has a block of more than 64 MiB, which is not a packet`);
    }
    const bytes = new Uint8Array(tail.length + count);
    bytes.set(tail);
    bytes.set(buffer.subarray(HEAD_BYTES, HEAD_BYTES + count), tail.length);
    return bytes;
  }
}
