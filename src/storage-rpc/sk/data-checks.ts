/**
 * End-to-end checks of data: a CRC-32C for every 4 KiB block, counted from the first byte of the request. The header
 * has the CRC of a single block, or of the list. The ICRC does not replace them: it ends at the NIC.
 */

import { crc32c } from '../../core/crc32c.js';
import { CHECKED_BLOCK_BYTES } from '../disk/block-device.js';

export const CHECK_BLOCK_BYTES = CHECKED_BLOCK_BYTES;

export interface DataChecks {
  /** For the header: of the data if it is one block, else of `list`. */
  readonly dataCrc: number;
  /** Little-endian CRCs, one a block; empty if there is only one block. */
  readonly list: Uint8Array;
}

export const NO_CHECKS: DataChecks = { dataCrc: 0, list: new Uint8Array(0) };

export function checkListBytes(length: number): number {
  return length <= CHECK_BLOCK_BYTES ? 0 : 4 * Math.ceil(length / CHECK_BLOCK_BYTES);
}

export function checksOf(data: Uint8Array): DataChecks {
  if (data.length <= CHECK_BLOCK_BYTES) return { dataCrc: crc32c(data), list: NO_CHECKS.list };
  const list = Buffer.allocUnsafe(checkListBytes(data.length));
  for (let at = 0, to = 0; at < data.length; at += CHECK_BLOCK_BYTES, to += 4) {
    list.writeUInt32LE(crc32c(data.subarray(at, at + CHECK_BLOCK_BYTES)), to);
  }
  return { dataCrc: crc32c(list), list };
}

export function checksOfCrcs(crcs: Uint32Array): DataChecks {
  if (crcs.length <= 1) return { dataCrc: crcs[0], list: NO_CHECKS.list };
  const list = Buffer.allocUnsafe(4 * crcs.length);
  for (let i = 0; i < crcs.length; i++) list.writeUInt32LE(crcs[i], 4 * i);
  return { dataCrc: crc32c(list), list };
}

export function crcsOfChecks({ dataCrc, list }: DataChecks): Uint32Array {
  if (list.length === 0) return Uint32Array.of(dataCrc);
  const view = new DataView(list.buffer, list.byteOffset, list.length);
  const crcs = new Uint32Array(list.length / 4);
  for (let i = 0; i < crcs.length; i++) crcs[i] = view.getUint32(4 * i, true);
  return crcs;
}

/** A list that is itself damaged counts as block 0. */
export function firstBadBlock(
  data: Uint8Array,
  { dataCrc, list }: DataChecks,
  from = 0,
  to: number = data.length,
): number {
  if (list.length !== checkListBytes(data.length)) return 0;
  if (list.length === 0) return crc32c(data) === dataCrc ? -1 : 0;
  if (crc32c(list) !== dataCrc) return 0;
  const crcs = Buffer.from(list.buffer, list.byteOffset, list.length);
  for (let at = from, block = from / CHECK_BLOCK_BYTES; at < to; at += CHECK_BLOCK_BYTES, block++) {
    if (crc32c(data.subarray(at, at + CHECK_BLOCK_BYTES)) !== crcs.readUInt32LE(4 * block)) return block;
  }
  return -1;
}
