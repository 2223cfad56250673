/**
 * The table of check values in memory: pages of 16 KiB, each for 8 MiB of the disk, as many as fit in a bound. Pages are written through,
 * so that one can be forgotten at any time; a page that a request holds stays.
 */

import type { FileHandle } from 'node:fs/promises';
import { ENTRY_BYTES, TABLE_OFFSET } from './checksum-format.js';
import { readFully, writeFully } from './file-io.js';

const PAGE_BYTES = 16 << 10;
/** Blocks that one page is about. */
export const PAGE_BLOCKS = PAGE_BYTES / ENTRY_BYTES;

interface Page {
  /** Two values a block. */
  readonly words: Uint32Array<ArrayBuffer>;
  /** Requests that hold it. */
  holders: number;
  /** Until it has been read. */
  loading: Promise<void> | undefined;
}

/** The pages of one table. */
export class ChecksumPages {
  readonly #file: FileHandle;
  readonly #bytesMax: number;
  /** Says whether all values of the page are zeros, without a look at the file. */
  readonly #isBlank: (firstBlock: number) => boolean;
  /** Called with what the file has, before anybody sees it. */
  readonly #onLoaded: (firstBlock: number, words: Uint32Array) => void;
  /** By number; the one used last stands last. */
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

  /** Memory in use, bytes. More than the bound only while requests hold so much. */
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

  /** The counterpart of a `hold` that has succeeded. */
  release(firstBlock: number, count: number): void {
    for (let index = pageOf(firstBlock); index <= pageOf(firstBlock + count - 1); index++) {
      this.#pages.get(index)!.holders--;
    }
  }

  /** The words of the page that a held block is in; its own are at {@link indexIn}. */
  wordsOf(block: number): Uint32Array {
    return this.#pages.get(pageOf(block))!.words;
  }

  /** Writes the values of held blocks to the file. */
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
      this.#pages.delete(index); // Who asks again has it read again.
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

/** Where the two values of a block are in the words of its page. */
export function indexIn(block: number): number {
  return 2 * (block % PAGE_BLOCKS);
}

function pageOf(block: number): number {
  return Math.floor(block / PAGE_BLOCKS);
}
