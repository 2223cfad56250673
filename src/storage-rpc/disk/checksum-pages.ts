/**
 * The table of check values in memory: pages of 16 KiB, each for 8 MiB of the disk, up to a bound. Pages are written
 * through and can be evicted at any time, unless a request holds them.
 */

import type { FileHandle } from 'node:fs/promises';
import { ENTRY_BYTES, TABLE_OFFSET } from './checksum-format.js';
import { readFully, writeFully } from './file-io.js';

const PAGE_BYTES = 16 << 10;
export const PAGE_BLOCKS = PAGE_BYTES / ENTRY_BYTES;

interface Page {
  readonly words: Uint32Array<ArrayBuffer>;
  holders: number;
  loading: Promise<void> | undefined;
}

export class ChecksumPages {
  readonly #file: FileHandle;
  readonly #bytesMax: number;
  readonly #isBlank: (firstBlock: number) => boolean;
  readonly #onLoaded: (firstBlock: number, words: Uint32Array) => void;
  readonly #pages = new Map<number, Page>();

  constructor(
    file: FileHandle,
    bytesMax: number,
    isBlank: (firstBlock: number) => boolean,
    onLoaded: (firstBlock: number, words: Uint32Array) => void,
  ) {
    this.#file = file;
    this.#bytesMax = bytesMax;
    this.#isBlank = isBlank;
    this.#onLoaded = onLoaded;
  }

  /** Exceeds the bound only while requests hold more. */
  get bytes(): number {
    return this.#pages.size * PAGE_BYTES;
  }

  /** Keeps the pages of the blocks in memory until `release`: a promise if they have to be read first. */
  hold(firstBlock: number, count: number): Promise<unknown> | undefined {
    let loads: Promise<void>[] | undefined;
    const held: Page[] = [];
    for (let index = pageOf(firstBlock); index <= pageOf(firstBlock + count - 1); index++) {
      let page = this.#pages.get(index);
      if (page === undefined) page = this.#add(index);
      else {
        this.#pages.delete(index);
        this.#pages.set(index, page);
      }
      page.holders++;
      held.push(page);
      if (page.loading === undefined) continue;
      loads ??= [];
      loads.push(page.loading);
    }
    if (loads === undefined) return undefined;
    return Promise.all(loads).catch((error: unknown) => {
      for (const page of held) page.holders--;
      throw error;
    });
  }

  release(firstBlock: number, count: number): void {
    for (let index = pageOf(firstBlock); index <= pageOf(firstBlock + count - 1); index++) {
      this.#pages.get(index)!.holders--;
    }
  }

  wordsOf(block: number): Uint32Array {
    return this.#pages.get(pageOf(block))!.words;
  }

  async store(firstBlock: number, count: number): Promise<void> {
    const end = firstBlock + count;
    for (let block = firstBlock; block < end; ) {
      const { words } = this.#pages.get(pageOf(block))!;
      const pieceEnd = Math.min(end, (pageOf(block) + 1) * PAGE_BLOCKS);
      const at = (block % PAGE_BLOCKS) * ENTRY_BYTES;
      const bytes = new Uint8Array(words.buffer, at, (pieceEnd - block) * ENTRY_BYTES);
      await writeFully(this.#file, bytes, TABLE_OFFSET + block * ENTRY_BYTES);
      block = pieceEnd;
    }
  }

  #add(index: number): Page {
    this.#makeRoom();
    const page: Page = { words: new Uint32Array(PAGE_BYTES / 4), holders: 0, loading: undefined };
    this.#pages.set(index, page);
    if (!this.#isBlank(index * PAGE_BLOCKS)) page.loading = this.#load(index, page);
    return page;
  }

  async #load(index: number, page: Page): Promise<void> {
    try {
      await readFully(this.#file, new Uint8Array(page.words.buffer), TABLE_OFFSET + index * PAGE_BYTES);
      this.#onLoaded(index * PAGE_BLOCKS, page.words);
      page.loading = undefined;
    } catch (error) {
      this.#pages.delete(index);
      throw error;
    }
  }

  #makeRoom(): void {
    if (this.bytes + PAGE_BYTES <= this.#bytesMax) return;
    for (const [index, { holders }] of this.#pages) {
      if (holders > 0) continue;
      this.#pages.delete(index);
      if (this.bytes + PAGE_BYTES <= this.#bytesMax) return;
    }
  }
}

export function indexIn(block: number): number {
  return 2 * (block % PAGE_BLOCKS);
}

function pageOf(block: number): number {
  return Math.floor(block / PAGE_BLOCKS);
}
