import { crc32c } from 'rocev2/internal/core';
import { BlockDeviceError, type BlockExtent, EXTENTS_MAX } from 'rocev2/internal/disk';
import { type BlockMap, DISK_BLOCK_BYTES, type MapRun, recordOf } from './block-map.js';
import type { DiskParts } from './disk-parts.js';

const READS_MAX = 32;

export class BlockReads {
  readonly #parts: Pick<DiskParts, 'reader' | 'onUnreadable'>;
  readonly #map: BlockMap;
  readonly #disk: string;

  constructor(parts: Pick<DiskParts, 'reader' | 'onUnreadable'>, map: BlockMap, disk: string) {
    this.#parts = parts;
    this.#map = map;
    this.#disk = disk;
  }

  async read(first: number, count: number, into: Uint8Array, crcs: Uint32Array | undefined): Promise<void> {
    const runs = this.#map.runs(first, count);
    let next = 0;
    const work = async () => {
      while (next < runs.length) {
        const run = runs[next++];
        const at = (run.block - first) * DISK_BLOCK_BYTES;
        const bytes = into.subarray(at, at + run.count * DISK_BLOCK_BYTES);
        await this.#readRun(run, bytes, crcs?.subarray(run.block - first, run.block - first + run.count));
      }
    };
    await Promise.all(Array.from({ length: Math.min(READS_MAX, runs.length) }, work));
  }

  async #readRun(run: MapRun, into: Uint8Array, crcs: Uint32Array | undefined): Promise<void> {
    if (run.extent === 0) {
      into.fill(0);
      crcs?.fill(crc32c(new Uint8Array(DISK_BLOCK_BYTES)));
      return;
    }
    const { offset, index } = recordOf(run);
    try {
      const blocks = await this.#parts.reader.read(run.extent, offset, index, run.count);
      into.set(blocks.data);
      crcs?.set(blocks.crcs);
    } catch (cause) {
      // The cleaner may have moved the blocks, and given their extent back.
      const isSame = Array.from({ length: run.count }, (_, k) => k).every((k) =>
        this.#map.isAt(run.block + k, { extent: run.extent, word: run.word + k }),
      );
      if (!isSame) return this.read(run.block, run.count, into, crcs);
      const text = `${run.count * DISK_BLOCK_BYTES} bytes at ${run.block * DISK_BLOCK_BYTES} of '${this.#disk}' cannot be read`;
      const error = new BlockDeviceError('EIO', `${text}: ${(cause as Error).message}`, { cause });
      this.#parts.onUnreadable?.(error);
      throw error;
    }
  }

  status(offset: number, length: number): readonly BlockExtent[] {
    const first = Math.floor(offset / DISK_BLOCK_BYTES);
    const count = Math.ceil((offset + length) / DISK_BLOCK_BYTES) - first;
    const found: { lengthBytes: number; hole: boolean; zero: boolean }[] = [];
    for (const run of this.#map.runs(first, count)) {
      const hole = run.extent === 0;
      const from = Math.max(offset, run.block * DISK_BLOCK_BYTES);
      const lengthBytes = Math.min(offset + length, (run.block + run.count) * DISK_BLOCK_BYTES) - from;
      const last = found.at(-1);
      if (last?.hole === hole) last.lengthBytes += lengthBytes;
      else if (found.length === EXTENTS_MAX) break;
      else found.push({ lengthBytes, hole, zero: hole });
    }
    return found;
  }
}
