import type { FileHandle } from 'node:fs/promises';
import { CHECKED_BLOCK_BYTES, checkedBlocks } from './block-device.js';
import { blockValue, valueOfCrc, ZERO_CRC } from './block-value.js';
import { checksumFileBytes, ENTRY_BYTES, REGION_BLOCKS, TABLE_OFFSET } from './checksum-format.js';
import { forStrides, readFully, STRIDE_BYTES, writeFully } from './file-io.js';
import { RegionMap } from './region-map.js';

/** Where the table of format 1 begins: two CRC-32Cs a block, exclusive-or'ed with that of zeros. */
const FORMAT_1_TABLE_OFFSET = 4096;
/** In format 1, before a value 0: the block has the CRC of zeros, but does not hold zeros. */
const FORMAT_1_NOT_ZERO = 1;
const STRIDE_BLOCKS = STRIDE_BYTES / CHECKED_BLOCK_BYTES;

export async function tableOfData(data: FileHandle, sums: FileHandle, sizeBytes: number): Promise<void> {
  await buildTable(sums, sizeBytes, async (put) => {
    await forStrides(data, 0, checkedBlocks(sizeBytes), async (first, bytes) => {
      const words = new Uint32Array((2 * bytes.length) / CHECKED_BLOCK_BYTES);
      for (let i = 0; i < words.length; i += 2) {
        words[i] = blockValue(first + i / 2, blockOf(bytes, i / 2));
        words[i + 1] = words[i];
      }
      await put(first, words);
    });
  });
}

/** Blocks that had two values there are read; what is damaged stays so. */
export async function tableOfFormat1(
  data: FileHandle,
  old: FileHandle,
  sums: FileHandle,
  sizeBytes: number,
): Promise<void> {
  const blocks = checkedBlocks(sizeBytes);
  await buildTable(sums, sizeBytes, async (put) => {
    for (let first = 0; first < blocks; first += STRIDE_BLOCKS) {
      const words = new Uint32Array(2 * Math.min(STRIDE_BLOCKS, blocks - first));
      await readFully(old, new Uint8Array(words.buffer), FORMAT_1_TABLE_OFFSET + first * ENTRY_BYTES);
      for (let i = 0; i < words.length; i += 2) {
        const block = first + i / 2;
        if (words[i] === 0 && words[i + 1] === 0) continue;
        const bytes = words[i] === words[i + 1] ? undefined : await readBlock(data, block);
        const values = fromFormat1(block, words[i], words[i + 1], bytes);
        words.set(values, i);
      }
      await put(first, words);
    }
  });
}

function fromFormat1(block: number, a: number, b: number, bytes: Uint8Array | undefined): [number, number] {
  const converted = (value: number) => (value === 0 ? 0 : valueOfCrc(block, (value ^ ZERO_CRC) >>> 0));
  if (bytes === undefined) return [converted(a), converted(a)];
  const value = blockValue(block, bytes);
  const isNotZero = a === FORMAT_1_NOT_ZERO && b === 0;
  const candidates = isNotZero ? [valueOfCrc(block, ZERO_CRC), 0] : [converted(a), converted(b)];
  return candidates.includes(value) ? [value, value] : [candidates[0], candidates[1]];
}

async function buildTable(
  sums: FileHandle,
  sizeBytes: number,
  work: (put: (first: number, words: Uint32Array) => Promise<void>) => Promise<void>,
): Promise<void> {
  await sums.truncate(0);
  await sums.truncate(checksumFileBytes(sizeBytes));
  const used = new Set<number>();
  await work(async (first, words) => {
    if (words.every((word) => word === 0)) return;
    used.add(Math.floor(first / REGION_BLOCKS)); // Strides begin at multiples of their size: none is in two regions.
    const bytes = new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
    await writeFully(sums, bytes, TABLE_OFFSET + first * ENTRY_BYTES);
  });
  await RegionMap.write(sums, checkedBlocks(sizeBytes), used);
}

async function readBlock(data: FileHandle, block: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(CHECKED_BLOCK_BYTES);
  await readFully(data, bytes, block * CHECKED_BLOCK_BYTES);
  return bytes;
}

function blockOf(bytes: Uint8Array, index: number): Uint8Array {
  return bytes.subarray(index * CHECKED_BLOCK_BYTES, (index + 1) * CHECKED_BLOCK_BYTES);
}
