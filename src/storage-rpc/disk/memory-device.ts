/** Only written data takes space, in pieces of 64 KiB. */

import { randomBytes } from 'node:crypto';
import { checkWhole, shown } from '../../core/arguments.js';
import { RoceError } from '../../core/errors.js';
import { type BlockDevice, BlockDeviceError, type BlockExtent, checkRange } from './block-device.js';
import { type DiskIdentity, newIdentity } from './disk-identity.js';

const PIECE_BYTES = 64 * 1024;

/** A disk whose data is lost when its process ends; a flush does nothing. */
export class MemoryDevice implements BlockDevice {
  readonly sizeBytes: number;
  readonly blockBytes = 1;
  /** The data is lost with the process. */
  readonly writeVerifier = randomBytes(8).readBigUInt64LE();
  /** Unique for each disk in memory: a recreated one is not the one that was lost. */
  readonly identity: DiskIdentity = newIdentity('memory');
  #pieces = new Map<number, Uint8Array>();
  #closed = false;

  /** Makes an empty disk, which takes no space yet. Throws ERR_ROCE_OUT_OF_RANGE for an invalid size. */
  constructor(sizeBytes: number) {
    this.sizeBytes = checkWhole('sizeBytes', sizeBytes, 0, Number.MAX_SAFE_INTEGER);
  }

  /**
   * A larger disk with the same data; the new space reads as zeros. Both use the same memory until one of them is
   * closed. Throws ERR_ROCE_OUT_OF_RANGE for a size below that of this disk.
   */
  grown(sizeBytes: number): MemoryDevice {
    if (!Number.isSafeInteger(sizeBytes) || sizeBytes < this.sizeBytes) {
      throw new RoceError(
        'ERR_ROCE_OUT_OF_RANGE',
        `a disk of ${this.sizeBytes} bytes cannot shrink to ${shown(sizeBytes)}`,
      );
    }
    const disk = new MemoryDevice(sizeBytes);
    disk.#pieces = this.#pieces;
    return disk;
  }

  async read(offset: number, length: number, into: Uint8Array): Promise<void> {
    this.#check(offset, length, 'EINVAL', into);
    this.#forPieces(offset, length, (index, begin, end, at) => {
      const piece = this.#pieces.get(index);
      if (piece === undefined) into.fill(0, at, at + end - begin);
      else into.set(piece.subarray(begin, end), at);
    });
  }

  async write(offset: number, data: Uint8Array): Promise<void> {
    this.#check(offset, data?.length, 'ENOSPC', data);
    this.#forPieces(offset, data.length, (index, begin, end, at) => {
      let piece = this.#pieces.get(index);
      if (piece === undefined) {
        piece = new Uint8Array(PIECE_BYTES);
        this.#pieces.set(index, piece);
      }
      piece.set(data.subarray(at, at + end - begin), begin);
    });
  }

  /** Does nothing: memory is not durable. */
  async flush(): Promise<void> {
    this.#check(0, 0, 'EINVAL');
  }

  async trim(offset: number, length: number): Promise<void> {
    this.#check(offset, length, 'EINVAL');
    this.#zero(offset, length);
  }

  async writeZeroes(offset: number, length: number): Promise<void> {
    this.#check(offset, length, 'ENOSPC');
    this.#zero(offset, length);
  }

  async blockStatus(offset: number, length: number): Promise<readonly BlockExtent[]> {
    this.#check(offset, length, 'EINVAL');
    const extents: { lengthBytes: number; hole: boolean; zero: boolean }[] = [];
    this.#forPieces(offset, length, (index, begin, end) => {
      const hole = !this.#pieces.has(index);
      const last = extents.at(-1);
      if (last?.hole === hole) last.lengthBytes += end - begin;
      else extents.push({ lengthBytes: end - begin, hole, zero: hole });
    });
    return extents;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#pieces.clear();
  }

  /** Same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #zero(offset: number, length: number): void {
    const first = Math.ceil(offset / PIECE_BYTES);
    const end = Math.floor((offset + length) / PIECE_BYTES);
    if (end - first > this.#pieces.size) {
      for (const index of [...this.#pieces.keys()]) if (index >= first && index < end) this.#pieces.delete(index);
      this.#zero(offset, first * PIECE_BYTES - offset);
      this.#zero(end * PIECE_BYTES, offset + length - end * PIECE_BYTES);
      return;
    }
    this.#forPieces(offset, length, (index, begin, end) => {
      if (end - begin === PIECE_BYTES) this.#pieces.delete(index);
      else this.#pieces.get(index)?.fill(0, begin, end);
    });
  }

  #check(offset: number, length: number, errno: 'EINVAL' | 'ENOSPC', ...memory: readonly [Uint8Array?]): void {
    if (this.#closed) throw new BlockDeviceError('ESHUTDOWN', 'the disk is closed');
    checkRange(this, offset, length, errno, ...memory);
  }

  #forPieces(
    offset: number,
    length: number,
    visit: (index: number, begin: number, end: number, at: number) => void,
  ): void {
    for (let at = 0; at < length; ) {
      const index = Math.floor((offset + at) / PIECE_BYTES);
      const begin = (offset + at) % PIECE_BYTES;
      const end = Math.min(PIECE_BYTES, begin + length - at);
      visit(index, begin, end, at);
      at += end - begin;
    }
  }
}
