/**
 * CRC-32C of every 4 KiB block of a file, in a second file beside it.
 *
 * Each block has two values there, and its bytes must have one of them. Before bytes change, the new value replaces one of the two, so that
 * a process that is killed between two steps leaves a block that is known to be good whether the bytes had changed or not. `commit` then
 * makes both the same, in memory only: the next process finds out which of the two it is by reading the block.
 *
 * Values are kept exclusive-or'ed with that of a zero block: a fresh file of holes is the table of a fresh disk. Both values 0 mean more
 * than a matching sum: the block is known to hold zeros.
 */

import type { FileHandle } from 'node:fs/promises';
import { crc32c } from '../../core/crc32c.js';
import { CHECKED_BLOCK_BYTES } from './block-device.js';

/** Before the table: magic, version, block size, and the number of blocks in two halves. The magic also tells the byte order. */
const HEADER_WORDS = 1024;
const HEADER_BYTES = 4 * HEADER_WORDS;
const MAGIC = 0x43336b34; // "4k3C" read the right way round
const VERSION = 1;
const ENTRY_BYTES = 8;

const ZEROS = new Uint8Array(CHECKED_BLOCK_BYTES);
const ZERO_CRC = crc32c(ZEROS);
/** Takes the place of one of two values 0 where the block does not hold zeros but happens to have their sum. */
const NOT_ZERO = 1;

/** The table of check values of one file: changed in memory and written beside the data, block by block. */
export class BlockChecksums {
  readonly #file: FileHandle;
  /** Two values a block. */
  readonly #table: Uint32Array;

  private constructor(file: FileHandle, table: Uint32Array) {
    this.#file = file;
    this.#table = table;
  }

  /** A table for blocks of zeros, which `seal` makes that of the file. */
  static async create(file: FileHandle, blocks: number): Promise<BlockChecksums> {
    await file.truncate(0);
    await file.truncate(HEADER_BYTES + blocks * ENTRY_BYTES);
    return new BlockChecksums(file, new Uint32Array(2 * blocks));
  }

  /** The table in the file: `none` where none was sealed, `other` where it is not one for so many blocks. */
  static async load(file: FileHandle, blocks: number): Promise<BlockChecksums | 'none' | 'other'> {
    const header = new Uint32Array(HEADER_WORDS);
    await readFully(file, new Uint8Array(header.buffer), 0);
    if (header.every((word) => word === 0)) return 'none';
    const expected = headerOf(blocks);
    if (!header.every((word, i) => word === expected[i])) return 'other';
    const table = new Uint32Array(2 * blocks);
    await readFully(file, new Uint8Array(table.buffer), HEADER_BYTES);
    return new BlockChecksums(file, table);
  }

  /** Runs of blocks of which only one of the two values can be right: what a killed process left. */
  unresolved(): Array<{ readonly first: number; readonly count: number }> {
    const runs: Array<{ first: number; count: number }> = [];
    for (let block = 0; 2 * block < this.#table.length; block++) {
      if (this.#table[2 * block] === this.#table[2 * block + 1]) continue;
      const last = runs.at(-1);
      if (last !== undefined && last.first + last.count === block) last.count++;
      else runs.push({ first: block, count: 1 });
    }
    return runs;
  }

  /** Whether the block holds zeros for sure. */
  isZero(block: number): boolean {
    return this.#table[2 * block] === 0 && this.#table[2 * block + 1] === 0;
  }

  /** Whether the whole block that has this CRC-32C is what was written there. */
  matches(block: number, crc: number): boolean {
    const value = (crc ^ ZERO_CRC) >>> 0;
    return value === this.#table[2 * block] || value === this.#table[2 * block + 1];
  }

  /** The blocks hold `bytes`, which nobody has told of before: in memory only. */
  adopt(first: number, bytes: Uint8Array): void {
    this.#enter(first, bytes);
    this.commit(first, bytes.length / CHECKED_BLOCK_BYTES);
  }

  /** The blocks are about to hold `bytes`: on file before it resolves. `crcs`: their CRC-32Cs, where they are known. */
  async expect(first: number, bytes: Uint8Array, crcs?: Uint32Array): Promise<void> {
    this.#enter(first, bytes, crcs);
    await this.#store(first, bytes.length / CHECKED_BLOCK_BYTES);
  }

  /** The same for zeros. */
  async expectZeros(first: number, count: number): Promise<void> {
    for (let block = first; block < first + count; block++) {
      this.#table[2 * block] = this.#table[2 * block + 1];
      this.#table[2 * block + 1] = 0;
    }
    await this.#store(first, count);
  }

  /** The blocks hold what was expected last. */
  commit(first: number, count: number): void {
    for (let i = 2 * first; i < 2 * (first + count); i += 2) {
      if (this.#table[i] !== NOT_ZERO || this.#table[i + 1] !== 0) this.#table[i] = this.#table[i + 1];
    }
  }

  /** The block was read: if its bytes have one of its values, it is that one. False if they have neither. */
  resolve(block: number, bytes: Uint8Array): boolean {
    const value = tableValue(bytes);
    const [a, b] = [this.#table[2 * block], this.#table[2 * block + 1]];
    if (value !== a && value !== b) return false;
    if (value !== 0 || isZero(bytes)) this.#table[2 * block] = value;
    else this.#table[2 * block] = NOT_ZERO;
    this.#table[2 * block + 1] = value;
    return true;
  }

  /** Makes this the table of the file. The header comes last, and with it the file counts: a table that is half made is none. */
  async seal(): Promise<void> {
    await this.save();
    await this.#file.datasync();
    const header = headerOf(this.#table.length / 2);
    await writeFully(this.#file, new Uint8Array(header.buffer), 0);
  }

  /** Writes the whole table as it is in memory. */
  async save(): Promise<void> {
    await this.#store(0, this.#table.length / 2);
  }

  #enter(first: number, bytes: Uint8Array, crcs?: Uint32Array): void {
    for (let at = 0, block = first; at < bytes.length; at += CHECKED_BLOCK_BYTES, block++) {
      const content = bytes.subarray(at, at + CHECKED_BLOCK_BYTES);
      const value = crcs === undefined ? tableValue(content) : (crcs[block - first] ^ ZERO_CRC) >>> 0;
      const isAmbiguous = value === 0 && !isZero(content);
      this.#table[2 * block] = isAmbiguous ? NOT_ZERO : this.#table[2 * block + 1];
      this.#table[2 * block + 1] = value;
    }
  }

  async #store(first: number, count: number): Promise<void> {
    if (count === 0) return;
    const bytes = new Uint8Array(this.#table.buffer, first * ENTRY_BYTES, count * ENTRY_BYTES);
    await writeFully(this.#file, bytes, HEADER_BYTES + first * ENTRY_BYTES);
  }
}

function headerOf(blocks: number): Uint32Array<ArrayBuffer> {
  const header = new Uint32Array(HEADER_WORDS);
  header.set([MAGIC, VERSION, CHECKED_BLOCK_BYTES, blocks % 2 ** 32, Math.floor(blocks / 2 ** 32)]);
  return header;
}

function tableValue(bytes: Uint8Array): number {
  return (crc32c(bytes) ^ ZERO_CRC) >>> 0;
}

function isZero(bytes: Uint8Array): boolean {
  return Buffer.compare(bytes, ZEROS) === 0;
}

/** Reads `into.length` bytes; what lies past the end of the file is zeros. */
export async function readFully(file: FileHandle, into: Uint8Array, position: number): Promise<void> {
  for (let at = 0; at < into.length; ) {
    const { bytesRead } = await file.read(into, at, into.length - at, position + at);
    if (bytesRead === 0) {
      into.fill(0, at);
      return;
    }
    at += bytesRead;
  }
}

/** Writes all of `bytes` at `position`, in as many calls as the system needs. */
export async function writeFully(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    at += (await file.write(bytes, at, bytes.length - at, position + at)).bytesWritten;
  }
}
