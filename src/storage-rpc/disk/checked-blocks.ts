/**
 * Blocks of a file with their check values: verified reads, crash-safe writes, and settling of blocks in doubt. The
 * caller holds the lock.
 */

import type { FileHandle } from 'node:fs/promises';
import { crc32c } from '../../core/crc32c.js';
import { punchHole, zeroRange } from '../../driver/file-calls.js';
import type { BlockChecksums } from './block-checksums.js';
import { BlockDeviceError, CHECKED_BLOCK_BYTES } from './block-device.js';
import { REGION_BLOCKS } from './checksum-format.js';
import { forStrides, readFully, STRIDE_BYTES, writeBlocks, writeFully } from './file-io.js';
import type { RegionMap } from './region-map.js';
import type { Settled } from './region-recovery.js';
import { WrittenBlocks } from './written-blocks.js';

const STRIDE_ZEROS = new Uint8Array(STRIDE_BYTES);

export interface BlockRange {
  readonly first: number;
  readonly count: number;
}

export interface CheckedBlocksParts {
  readonly data: FileHandle;
  /** The last block may reach past it. */
  readonly sizeBytes: number;
  readonly regions: RegionMap;
  readonly checksums: BlockChecksums;
  readonly thick: boolean;
  readonly onDoubt: () => void;
}

export class CheckedBlocks {
  errors = 0;
  readonly written = new WrittenBlocks();
  readonly #parts: CheckedBlocksParts;
  readonly #data: FileHandle;
  readonly #regions: RegionMap;
  readonly #checksums: BlockChecksums;

  constructor(parts: CheckedBlocksParts) {
    this.#parts = parts;
    this.#data = parts.data;
    this.#regions = parts.regions;
    this.#checksums = parts.checksums;
  }

  async hold<T>({ first, count }: BlockRange, work: () => Promise<T>): Promise<T> {
    const loading = this.#checksums.hold(first, count);
    if (loading !== undefined) await loading;
    try {
      return await work();
    } finally {
      this.#checksums.release(first, count);
    }
  }

  async read(
    { first, count }: BlockRange,
    into: Uint8Array = Buffer.allocUnsafe(count * CHECKED_BLOCK_BYTES),
    crcs = new Uint32Array(count),
  ): Promise<Uint8Array> {
    await readFully(this.#data, into, first * CHECKED_BLOCK_BYTES);
    for (let i = 0; i < count; i++) {
      crcs[i] = crc32c(into.subarray(i * CHECKED_BLOCK_BYTES, (i + 1) * CHECKED_BLOCK_BYTES));
      if (this.#checksums.matches(first + i, crcs[i])) continue;
      this.errors++;
      const at = (first + i) * CHECKED_BLOCK_BYTES;
      throw new BlockDeviceError('EIO', `the 4 KiB at ${at} are damaged: their checksum is wrong`);
    }
    return into;
  }

  write(blocks: BlockRange, data: Uint8Array, crcs: Uint32Array | undefined): Promise<void> {
    return this.#change(blocks, async () => {
      await this.#checksums.expect(blocks.first, data, crcs);
      await writeBlocks(this.#data, data, blocks.first, this.#parts.sizeBytes);
    });
  }

  async damagedIn({ first, count }: BlockRange): Promise<number[]> {
    const damaged: number[] = [];
    await forStrides(this.#data, first, count, async (strideFirst, bytes) => {
      for (let at = 0, block = strideFirst; at < bytes.length; at += CHECKED_BLOCK_BYTES, block++) {
        const crc = crc32c(bytes.subarray(at, at + CHECKED_BLOCK_BYTES));
        if (!this.#checksums.matches(block, crc)) damaged.push(block * CHECKED_BLOCK_BYTES);
      }
    });
    return damaged;
  }

  async merged(blocks: BlockRange, offset: number, data: Uint8Array): Promise<Uint8Array> {
    const whole = Buffer.allocUnsafe(blocks.count * CHECKED_BLOCK_BYTES);
    const begin = offset % CHECKED_BLOCK_BYTES;
    const end = begin + data.length;
    const last = blocks.count - 1;
    const isLastPartial = end % CHECKED_BLOCK_BYTES !== 0;
    if (begin !== 0 || (last === 0 && isLastPartial)) {
      await this.read({ first: blocks.first, count: 1 }, whole.subarray(0, CHECKED_BLOCK_BYTES));
    }
    if (last > 0 && isLastPartial) {
      await this.read({ first: blocks.first + last, count: 1 }, whole.subarray(last * CHECKED_BLOCK_BYTES));
    }
    whole.set(data, begin);
    return whole;
  }

  async zero(piece: BlockRange, mayPunch: boolean): Promise<void> {
    let isZero = true;
    for (let i = 0; i < piece.count && isZero; i++) isZero = this.#checksums.isZero(piece.first + i);
    if (isZero) {
      if (!this.#parts.thick) await this.storeZeros(piece, mayPunch);
      return;
    }
    await this.#change(piece, async () => {
      await this.#checksums.expectZeros(piece.first, piece.count);
      await this.storeZeros(piece, mayPunch);
    });
  }

  /** Fills the file with zeros, independent of the checksums. */
  async storeZeros({ first, count }: BlockRange, mayPunch: boolean): Promise<void> {
    const offset = first * CHECKED_BLOCK_BYTES;
    const length = Math.min(count * CHECKED_BLOCK_BYTES, this.#parts.sizeBytes - offset);
    if (await (mayPunch ? punchHole : zeroRange)(this.#data.fd, offset, length)) return;
    for (let at = 0; at < length; at += STRIDE_BYTES) {
      await writeFully(this.#data, STRIDE_ZEROS.subarray(0, Math.min(STRIDE_BYTES, length - at)), offset + at);
    }
  }

  /** Where that fails they are old or new: the next change must not begin before it is known which. */
  async #change(blocks: BlockRange, work: () => Promise<void>): Promise<void> {
    const { first, count } = blocks;
    if (count === 0) return;
    const firstRegion = Math.floor(first / REGION_BLOCKS);
    const lastRegion = Math.floor((first + count - 1) / REGION_BLOCKS);
    const marking = this.#regions.enter(firstRegion, lastRegion);
    if (marking !== undefined) await marking;
    try {
      await this.settle(blocks).catch(() => {});
      await work();
      this.#checksums.commit(first, count);
      this.written.add(first, count);
    } catch (error) {
      for (let region = firstRegion; region <= lastRegion; region++) this.#regions.doubt(region);
      await this.settle(blocks).catch(() => {});
      this.#parts.onDoubt();
      throw error;
    } finally {
      this.#regions.leave(firstRegion, lastRegion);
    }
  }

  /**
   * The data of these blocks is durable: their older values, which an older copy of the data would match, leave the
   * file. Blocks that were written since then wait for the next sync.
   */
  async forgetOlder({ first, count }: BlockRange): Promise<void> {
    const end = first + count;
    for (let block = first; block < end; block++) {
      const isSettled = (at: number) => at < end && !this.written.has(at) && !this.#checksums.isOpen(at);
      let runEnd = block;
      while (isSettled(runEnd)) runEnd++;
      if (runEnd > block) await this.#checksums.store(block, runEnd - block);
      block = runEnd;
    }
  }

  async settle({ first, count }: BlockRange): Promise<Settled> {
    const settled: Settled = { newer: 0, older: 0, torn: 0 };
    const end = first + count;
    for (let block = first; block < end; block++) {
      if (!this.#checksums.isOpen(block)) continue;
      let runEnd = block + 1;
      while (runEnd < end && this.#checksums.isOpen(runEnd)) runEnd++;
      await this.#settleRun({ first: block, count: runEnd - block }, settled);
      block = runEnd;
    }
    return settled;
  }

  async #settleRun(run: BlockRange, settled: Settled): Promise<void> {
    await forStrides(this.#data, run.first, run.count, async (first, bytes) => {
      const count = bytes.length / CHECKED_BLOCK_BYTES;
      let hasOlder = false;
      for (let i = 0; i < count; i++) {
        const block = bytes.subarray(i * CHECKED_BLOCK_BYTES, (i + 1) * CHECKED_BLOCK_BYTES);
        const outcome = this.#checksums.resolve(first + i, block);
        settled[outcome]++;
        hasOlder ||= outcome === 'older';
      }
      if (hasOlder) await this.#checksums.store(first, count);
    });
  }
}

export function* regionsOf({ first, count }: BlockRange): Generator<BlockRange & { readonly region: number }> {
  const end = first + count;
  for (let block = first; block < end; ) {
    const region = Math.floor(block / REGION_BLOCKS);
    const pieceEnd = Math.min(end, (region + 1) * REGION_BLOCKS);
    yield { region, first: block, count: pieceEnd - block };
    block = pieceEnd;
  }
}
