/**
 * The map of a disk: where each block is in the log. 8 bytes a block, in pages of 4096 blocks (16 MiB of the disk, 32
 * KiB of memory) that exist only if one of their blocks has been written. The disk limit of 1 TiB bounds the map to 2
 * GiB.
 */

import { RoceError } from 'rocev2/internal/core';
import type { Location } from '../stream-writer.js';

/** Granularity of the map: the bytes under one CRC of a record. */
export const DISK_BLOCK_BYTES = 4096;
export const PAGE_BLOCKS = 4096;
export const PAGE_BYTES = 8 * PAGE_BLOCKS;
export const DISK_BYTES_MAX = 2 ** 40;
/** Most blocks in one record of the log: their place in it has 8 bits. */
export const RECORD_BLOCKS_MAX = 256;

/** Sizes of disks are multiples of it; the last block of a disk may reach past its end, where it is zero. */
export const DISK_SECTOR_BYTES = 512;
const SECTOR_BYTES = 512;

/**
 * Where a block is: the extent, and in one number where its record begins, in sectors (24 bits: extents of 8 GiB), and
 * which block of the record it is (8 bits). Places are never used again, so that equal places have equal bytes.
 */
export interface Place {
  /** Number of the extent; 0: the block has never been written, or was given back. */
  readonly extent: number;
  readonly word: number;
}

export interface MapRun extends Place {
  readonly block: number;
  readonly count: number;
}

export function blockLocation({ extent, offset }: Location, index: number): Place {
  const word = (offset / SECTOR_BYTES) * RECORD_BLOCKS_MAX + index;
  if (word < 2 ** 32) return { extent, word };
  throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `byte ${offset} of an extent`, 'extents of disks have 8 GiB at most');
}

export function recordOf({ word }: Place): { readonly offset: number; readonly index: number } {
  return { offset: Math.floor(word / RECORD_BLOCKS_MAX) * SECTOR_BYTES, index: word % RECORD_BLOCKS_MAX };
}

export class BlockMap {
  readonly blocks: number;
  /** Extent and word of each block in turn. */
  readonly #pages = new Map<number, Uint32Array>();
  readonly #used = new Map<number, number>();
  readonly #live = new Map<number, number>();
  #dirty = new Set<number>();
  #liveBlocks = 0;

  constructor(blocks: number) {
    this.blocks = blocks;
  }

  static forDisk(sizeBytes: number): BlockMap {
    return new BlockMap(Math.ceil(sizeBytes / DISK_BLOCK_BYTES));
  }

  get liveBlocks(): number {
    return this.#liveBlocks;
  }

  get memoryBytes(): number {
    return this.#pages.size * PAGE_BYTES;
  }

  get dirtyPages(): number {
    return this.#dirty.size;
  }

  liveIn(extent: number): number {
    return this.#live.get(extent) ?? 0;
  }

  liveExtents(): IterableIterator<number> {
    return this.#live.keys();
  }

  isAt(block: number, { extent, word }: Place): boolean {
    const page = this.#pages.get(Math.floor(block / PAGE_BLOCKS));
    const at = 2 * (block % PAGE_BLOCKS);
    return page !== undefined && page[at] === extent && page[at + 1] === word;
  }

  set(block: number, { extent, word }: Place): void {
    const number = Math.floor(block / PAGE_BLOCKS);
    let page = this.#pages.get(number);
    if (page === undefined) {
      if (extent === 0) return;
      page = new Uint32Array(2 * PAGE_BLOCKS);
      this.#pages.set(number, page);
    }
    this.#dirty.add(number);
    const at = 2 * (block % PAGE_BLOCKS);
    this.#count(number, page[at], -1);
    page[at] = extent;
    page[at + 1] = word;
    this.#count(number, extent, 1);
    if (this.#used.get(number) === 0) {
      this.#used.delete(number);
      this.#pages.delete(number);
    }
  }

  #count(page: number, extent: number, change: number): void {
    if (extent === 0) return;
    this.#liveBlocks += change;
    this.#used.set(page, (this.#used.get(page) ?? 0) + change);
    const live = (this.#live.get(extent) ?? 0) + change;
    if (live === 0) this.#live.delete(extent);
    else this.#live.set(extent, live);
  }

  clear(first: number, count: number): void {
    const end = first + count;
    for (let block = first; block < end; ) {
      const number = Math.floor(block / PAGE_BLOCKS);
      const pageEnd = Math.min(end, (number + 1) * PAGE_BLOCKS);
      for (; block < pageEnd && this.#pages.has(number); block++) this.set(block, { extent: 0, word: 0 });
      block = pageEnd;
    }
  }

  runs(first: number, count: number, most = Number.POSITIVE_INFINITY): MapRun[] {
    const found: { block: number; count: number; extent: number; word: number }[] = [];
    const end = first + count;
    for (let block = first; block < end; ) {
      const number = Math.floor(block / PAGE_BLOCKS);
      const page = this.#pages.get(number);
      const at = 2 * (block % PAGE_BLOCKS);
      const extent = page?.[at] ?? 0;
      const word = page?.[at + 1] ?? 0;
      const length = page === undefined ? Math.min(end, (number + 1) * PAGE_BLOCKS) - block : 1;
      const last = found.at(-1);
      const isNext =
        last?.extent === extent &&
        (extent === 0 || (word === last.word + last.count && word % RECORD_BLOCKS_MAX !== 0));
      if (isNext) last.count += length;
      else if (found.length === most) break;
      else found.push({ block, count: length, extent, word });
      block += length;
    }
    return found;
  }

  takeDirty(): Set<number> {
    const dirty = this.#dirty;
    this.#dirty = new Set();
    return dirty;
  }

  touch(pages: Iterable<number>): void {
    for (const page of pages) this.#dirty.add(page);
  }

  pageBytes(number: number): Buffer | undefined {
    const page = this.#pages.get(number);
    if (page === undefined) return undefined;
    const bytes = Buffer.allocUnsafe(PAGE_BYTES);
    for (let k = 0; k < page.length; k++) bytes.writeUInt32LE(page[k], 4 * k);
    return bytes;
  }

  loadPage(number: number, bytes: Buffer): void {
    const page = new Uint32Array(2 * PAGE_BLOCKS);
    for (let k = 0; k < page.length; k++) page[k] = bytes.readUInt32LE(4 * k);
    this.#pages.set(number, page);
    for (let k = 0; k < page.length; k += 2) this.#count(number, page[k], 1);
  }
}
