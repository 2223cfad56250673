/**
 * The checksum file of a disk, format 2: identity of the disk, regions that may have been changing, and two check
 * values per block.
 *
 *        0   header, first copy
 *     4096   header, second copy
 *     2048 and 6144   the last lease of the disk, twice (`lease-record.ts`)
 *     8192   region map: one byte for each 64 MiB of the disk (`region-map.ts`), 1 MiB of them
 *     8192 + 1 MiB   table: two values of 4 bytes for each block of 4 KiB (`block-value.ts`)
 *
 * Header, 512 bytes in words of 4 bytes, in the byte order of the machine, which the magic shows:
 *
 *     0 magic   1 version   2 block size   3, 4 blocks   5 flags: 1 thick, 2 unfinished   6 region size
 *     7 bytes of the last block that are past the end of the disk; in the upper half, of the size it is growing to
 *     8, 9 generation
 *     10 to 13 UUID   14 to 29 name, UTF-8, padded with zeros   30, 31 blocks that it is growing to, or zero
 *     32 to 124 the last 31 openings, the present one first: a random mark of two words, and the number of checkpoints
 *     125, 126 when the data was written last, before it was closed: nanoseconds since 1970; zero: it was not closed
 *     127 CRC-32C of the bytes before
 *
 * A header fits in one sector, and a newer one never replaces the newest: one of the two is always complete. The newest
 * has the highest generation, and of one generation the highest checkpoint. Blocks that were never written are holes
 * and read as zeros, in map and table alike: a header followed by holes is the table of a blank disk.
 */

import { randomBytes } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { crc32c } from '../../core/crc32c.js';
import { CHECKED_BLOCK_BYTES, checkedBlocks } from './block-device.js';
import {
  DISK_OPENINGS_MAX,
  type DiskIdentity,
  type DiskOpening,
  UUID_BYTES,
  uuidBytes,
  uuidText,
} from './disk-identity.js';
import { readFully, writeFully } from './file-io.js';

const MAGIC = 0x43336b34; // "4k3C" read the right way round
export const FORMAT_VERSION = 2;
const HEADER_BYTES = 512;
const HEADER_WORDS = HEADER_BYTES / 4;
const COPY_BYTES = 4096;
const UUID_AT = 40;
const NAME_AT = 56;
const NAME_BYTES = 64;
const PAST_END_WORD = 7;
const GROWING_WORD = 30;
const OPENINGS_WORD = 32;
const OPENING_WORDS = 3;
const CLOSED_WORD = 125;
const CRC_WORD = HEADER_WORDS - 1;
const THICK = 1;
const UNFINISHED = 2;

export const REGION_BYTES = 64 << 20;
/** Number of blocks of 4 KiB in a region. */
export const REGION_BLOCKS = REGION_BYTES / CHECKED_BLOCK_BYTES;
export const MAP_OFFSET = 2 * COPY_BYTES;
const MAP_BYTES = 1 << 20;
export const TABLE_OFFSET = MAP_OFFSET + MAP_BYTES;
export const ENTRY_BYTES = 8;
/** The region map has a byte for each region of the largest disk: 64 TiB. */
export const DISK_BYTES_MAX = MAP_BYTES * REGION_BYTES;

export interface ChecksumHeader extends DiskIdentity {
  readonly sizeBytes: number;
  readonly thick: boolean;
  /** The disk is being enlarged to this many bytes: its data has the old size or this one. */
  readonly growingTo?: number;
  /** The disk is still being made: it is blank and unused. */
  readonly unfinished: boolean;
  readonly openings: readonly DiskOpening[];
  /** The modification time of the data when it was closed; 0: it was not. */
  readonly closedNs: bigint;
  /** In which of the two places it is. */
  readonly copy: 0 | 1;
}

/** A header that takes the place of the older copy. */
export function nextHeader(header: ChecksumHeader, change: Partial<ChecksumHeader>): ChecksumHeader {
  return { ...header, closedNs: 0n, ...change, copy: header.copy === 0 ? 1 : 0 };
}

/** The disk is opened once more. */
export function openedHeader(header: ChecksumHeader, change: Partial<ChecksumHeader>): ChecksumHeader {
  const openings = [{ mark: newMark(), checkpoint: 0 }, ...header.openings].slice(0, DISK_OPENINGS_MAX);
  return nextHeader(header, { ...change, generation: header.generation + 1, openings });
}

function newMark(): bigint {
  for (;;) {
    const mark = randomBytes(8).readBigUInt64LE();
    if (mark !== 0n) return mark;
  }
}

/** `other`: something else, or for other blocks; `newer`: of a later version of this program. */
export type FoundHeader =
  | { readonly kind: 'none' | 'other' | 'newer' }
  | { readonly kind: 'format-1'; readonly sizeBytes: number }
  | { readonly kind: 'present'; readonly header: ChecksumHeader };

export function checksumFileBytes(diskBytes: number): number {
  return TABLE_OFFSET + checkedBlocks(diskBytes) * ENTRY_BYTES;
}

export async function readHeader(file: FileHandle): Promise<FoundHeader> {
  const copies = Buffer.alloc(2 * COPY_BYTES);
  await readFully(file, copies, 0);
  const first = wordsOf(copies, 0);
  if (first[0] === MAGIC && first[1] === 1 && first[2] === CHECKED_BLOCK_BYTES) {
    return { kind: 'format-1', sizeBytes: numberAt(first, 3) * CHECKED_BLOCK_BYTES };
  }
  const valid = ([0, 1] as const).flatMap((copy) => decodeHeader(wordsOf(copies, copy * COPY_BYTES), copy) ?? []);
  if (valid.length > 0) return { kind: 'present', header: valid.reduce((a, b) => (isNewer(a, b) ? a : b)) };
  if (copies.every((byte) => byte === 0)) return { kind: 'none' };
  return { kind: first[0] === MAGIC && first[1] > FORMAT_VERSION ? 'newer' : 'other' };
}

export async function writeHeader(file: FileHandle, header: ChecksumHeader): Promise<void> {
  await writeFully(file, encodeHeader(header), header.copy * COPY_BYTES);
}

function isNewer(a: ChecksumHeader, b: ChecksumHeader): boolean {
  if (a.generation !== b.generation) return a.generation > b.generation;
  if (a.openings[0].checkpoint !== b.openings[0].checkpoint) return a.openings[0].checkpoint > b.openings[0].checkpoint;
  return a.closedNs > b.closedNs; // It is closed last.
}

function encodeHeader(header: ChecksumHeader): Buffer {
  const words = new Uint32Array(HEADER_WORDS);
  const bytes = Buffer.from(words.buffer);
  const flags = (header.thick ? THICK : 0) | (header.unfinished ? UNFINISHED : 0);
  words.set([MAGIC, FORMAT_VERSION, CHECKED_BLOCK_BYTES]);
  setNumber(words, 3, checkedBlocks(header.sizeBytes));
  words[5] = flags;
  words[6] = REGION_BYTES;
  setNumber(words, 8, header.generation);
  setNumber(words, GROWING_WORD, checkedBlocks(header.growingTo ?? 0));
  words[PAST_END_WORD] = pastEnd(header.sizeBytes) + pastEnd(header.growingTo ?? 0) * 2 ** 16;
  bytes.set(uuidBytes(header.uuid), UUID_AT);
  bytes.write(header.name, NAME_AT, NAME_BYTES - 1, 'utf8');
  for (const [k, { mark, checkpoint }] of header.openings.entries()) {
    const at = OPENINGS_WORD + OPENING_WORDS * k;
    words[at] = Number(mark & 0xffff_ffffn);
    words[at + 1] = Number(mark >> 32n);
    words[at + 2] = checkpoint;
  }
  words[CLOSED_WORD] = Number(header.closedNs & 0xffff_ffffn);
  words[CLOSED_WORD + 1] = Number(header.closedNs >> 32n);
  words[CRC_WORD] = crc32c(bytes.subarray(0, 4 * CRC_WORD));
  return bytes;
}

function decodeHeader(words: Uint32Array, copy: 0 | 1): ChecksumHeader | undefined {
  const bytes = Buffer.from(words.buffer, words.byteOffset, HEADER_BYTES);
  if (words[0] !== MAGIC || words[1] !== FORMAT_VERSION) return undefined;
  if (words[CRC_WORD] !== crc32c(bytes.subarray(0, 4 * CRC_WORD))) return undefined;
  if (words[2] !== CHECKED_BLOCK_BYTES || words[6] !== REGION_BYTES) return undefined;
  const name = bytes.subarray(NAME_AT, NAME_AT + NAME_BYTES);
  const growingTo = numberAt(words, GROWING_WORD) * CHECKED_BLOCK_BYTES - (words[PAST_END_WORD] >>> 16);
  return {
    sizeBytes: numberAt(words, 3) * CHECKED_BLOCK_BYTES - (words[PAST_END_WORD] & 0xffff),
    ...(growingTo > 0 && { growingTo }),
    thick: (words[5] & THICK) !== 0,
    unfinished: (words[5] & UNFINISHED) !== 0,
    generation: numberAt(words, 8),
    uuid: uuidText(bytes.subarray(UUID_AT, UUID_AT + UUID_BYTES)),
    name: name.toString('utf8', 0, name.indexOf(0)),
    openings: openingsOf(words),
    closedNs: (BigInt(words[CLOSED_WORD + 1]) << 32n) | BigInt(words[CLOSED_WORD]),
    copy,
  };
}

function pastEnd(sizeBytes: number): number {
  return checkedBlocks(sizeBytes) * CHECKED_BLOCK_BYTES - sizeBytes;
}

function openingsOf(words: Uint32Array): DiskOpening[] {
  return Array.from({ length: DISK_OPENINGS_MAX }, (_, k) => {
    const at = OPENINGS_WORD + OPENING_WORDS * k;
    return { mark: (BigInt(words[at + 1]) << 32n) | BigInt(words[at]), checkpoint: words[at + 2] };
  });
}

function wordsOf(copies: Buffer, at: number): Uint32Array {
  const words = new Uint32Array(HEADER_WORDS);
  Buffer.from(words.buffer).set(copies.subarray(at, at + HEADER_BYTES));
  return words;
}

function numberAt(words: Uint32Array, index: number): number {
  return words[index] + words[index + 1] * 2 ** 32;
}

function setNumber(words: Uint32Array, index: number, value: number): void {
  words[index] = value % 2 ** 32;
  words[index + 1] = Math.floor(value / 2 ** 32);
}
