/**
 * The check value of a block: its CRC-32C mixed with its position, so that a misplaced write is detected. Value 0
 * belongs to blocks of zeros alone: unwritten blocks need no table.
 */

import { crc32c } from '../../core/crc32c.js';
import { CHECKED_BLOCK_BYTES } from './block-device.js';

const ZEROS = new Uint8Array(CHECKED_BLOCK_BYTES);
/** CRC-32C of 4 KiB of zeros. */
export const ZERO_CRC = crc32c(ZEROS);
/** Replaces a value 0 that is not that of zeros. */
const NOT_ZERO = 1;

export function blockValue(block: number, bytes: Uint8Array, crc = crc32c(bytes)): number {
  return crc === ZERO_CRC && isZeros(bytes) ? 0 : valueOfCrc(block, crc);
}

/** Value of a block with this CRC-32C that does not hold zeros. */
export function valueOfCrc(block: number, crc: number): number {
  return (crc ^ ZERO_CRC ^ blockSalt(block)) >>> 0 || NOT_ZERO;
}

export function isZeros(bytes: Uint8Array): boolean {
  return Buffer.compare(bytes, ZEROS) === 0;
}

/** 32 bits that differ from block to block: the finalizer of MurmurHash3 over both halves of the number. */
function blockSalt(block: number): number {
  let mixed = (block ^ Math.imul(Math.floor(block / 2 ** 32), 0x9e3779b1)) + 0x9e3779b1;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
