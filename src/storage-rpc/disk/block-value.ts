/**
 * The check value of a block: its CRC-32C, mixed with the block's place on the disk, so that a block, or a piece of the table, that was
 * written to the wrong place is noticed. Value 0 belongs to blocks of zeros alone: what was never written needs no table.
 */

import { crc32c } from '../../core/crc32c.js';
import { CHECKED_BLOCK_BYTES } from './block-device.js';

const ZEROS = new Uint8Array(CHECKED_BLOCK_BYTES);
/** CRC-32C of 4 KiB of zeros. */
export const ZERO_CRC = crc32c(ZEROS);
/** In place of a value 0 that is not that of zeros. */
const NOT_ZERO = 1;

/** Value of the block with these bytes; `crc`: their CRC-32C. */
export function blockValue(block: number, bytes: Uint8Array, crc = crc32c(bytes)): number {
  return crc === ZERO_CRC && isZeros(bytes) ? 0 : valueOfCrc(block, crc);
}

/** Value of a block with this CRC-32C that does not hold zeros. */
export function valueOfCrc(block: number, crc: number): number {
  return (crc ^ ZERO_CRC ^ mixBlockNumber(block)) >>> 0 || NOT_ZERO;
}

/** Whether the 4 KiB are zeros. */
export function isZeros(bytes: Uint8Array): boolean {
  return Buffer.compare(bytes, ZEROS) === 0;
}

/** 32 bits that differ from block to block: the finalizer of MurmurHash3 over both halves of the number. */
function mixBlockNumber(block: number): number {
  let mixed = (block ^ Math.imul(Math.floor(block / 2 ** 32), 0x9e3779b1)) + 0x9e3779b1;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
