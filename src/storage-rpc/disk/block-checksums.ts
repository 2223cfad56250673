/**
 * Check values of every 4 KiB block of a file, in a second file (`checksum-format.ts`). Each block has two values and
 * its bytes must match one. Before bytes change, the new value replaces one of the two, so that a killed process leaves
 * a block known to be good either way; `commit` then makes both equal, in memory only. Where a region is settled
 * (`region-map.ts`), the second value on file holds.
 */

import type { FileHandle } from 'node:fs/promises';
import { CHECKED_BLOCK_BYTES } from './block-device.js';
import { blockValue, valueOfCrc, ZERO_CRC } from './block-value.js';
import { REGION_BLOCKS } from './checksum-format.js';
import { ChecksumPages, indexIn } from './checksum-pages.js';
import type { RegionMap } from './region-map.js';

/** Every method but `hold` needs its blocks to be held. */
export class BlockChecksums {
  readonly #pages: ChecksumPages;

  constructor(file: FileHandle, regions: RegionMap, memoryBytesMax: number) {
    const regionOf = (block: number) => Math.floor(block / REGION_BLOCKS);
    this.#pages = new ChecksumPages(
      file,
      memoryBytesMax,
      (block) => !regions.isUsed(regionOf(block)),
      (block, words) => {
        if (regions.isUnsettled(regionOf(block))) return;
        for (let i = 0; i < words.length; i += 2) words[i] = words[i + 1];
      },
    );
  }

  get memoryBytes(): number {
    return this.#pages.bytes;
  }

  hold(first: number, count: number): Promise<unknown> | undefined {
    return count === 0 ? undefined : this.#pages.hold(first, count);
  }

  release(first: number, count: number): void {
    if (count > 0) this.#pages.release(first, count);
  }

  /** Whether it is not known which of two values the block has. */
  isOpen(block: number): boolean {
    const words = this.#pages.wordsOf(block);
    const at = indexIn(block);
    return words[at] !== words[at + 1];
  }

  isZero(block: number): boolean {
    const words = this.#pages.wordsOf(block);
    const at = indexIn(block);
    return words[at] === 0 && words[at + 1] === 0;
  }

  /** Whether the whole block that has this CRC-32C is what was written there. */
  matches(block: number, crc: number): boolean {
    const words = this.#pages.wordsOf(block);
    const at = indexIn(block);
    const value = valueOfCrc(block, crc);
    if (words[at] === value || words[at + 1] === value) return true;
    return crc === ZERO_CRC && (words[at] === 0 || words[at + 1] === 0);
  }

  /** `crcs`: their CRC-32Cs, where they are known. */
  async expect(first: number, bytes: Uint8Array, crcs?: Uint32Array): Promise<void> {
    for (let at = 0, block = first; at < bytes.length; at += CHECKED_BLOCK_BYTES, block++) {
      const content = bytes.subarray(at, at + CHECKED_BLOCK_BYTES);
      this.#push(block, blockValue(block, content, crcs?.[block - first]));
    }
    await this.#pages.store(first, bytes.length / CHECKED_BLOCK_BYTES);
  }

  async expectZeros(first: number, count: number): Promise<void> {
    for (let block = first; block < first + count; block++) this.#push(block, 0);
    await this.#pages.store(first, count);
  }

  commit(first: number, count: number): void {
    for (let block = first; block < first + count; block++) {
      const words = this.#pages.wordsOf(block);
      const at = indexIn(block);
      words[at] = words[at + 1];
    }
  }

  /** `older`: it is not the one that holds in a settled region, until `store`. `torn`: its bytes have neither. */
  resolve(block: number, bytes: Uint8Array): 'newer' | 'older' | 'torn' {
    const words = this.#pages.wordsOf(block);
    const at = indexIn(block);
    const value = blockValue(block, bytes);
    const [older, newer] = [words[at], words[at + 1]];
    if (value !== older && value !== newer) return 'torn';
    words[at] = value;
    words[at + 1] = value;
    return value === newer ? 'newer' : 'older';
  }

  store(first: number, count: number): Promise<void> {
    return this.#pages.store(first, count);
  }

  #push(block: number, value: number): void {
    const words = this.#pages.wordsOf(block);
    const at = indexIn(block);
    words[at] = words[at + 1];
    words[at + 1] = value;
  }
}
