/**
 * Atomics on memory (IBTA vol. 1 §9.4.5). Operands are numbers of the wire; memory holds a little-endian u64, as on
 * every host that Node runs on.
 */

import { copyBytes, IS_LITTLE_ENDIAN } from '../core/bytes.js';
import type { MemoryRange } from '../memory/memory-range.js';
import { RC_FETCH_ADD } from '../packet/opcode.js';
import type { RocePacket } from '../packet/roce.js';

/** A 64-bit value in halves: the memory's content before the operation. */
interface Original {
  origHigh: number;
  origLow: number;
}

const word = new Uint8Array(8);
const wordAsLong = new BigUint64Array(word.buffer);

export function readHostU64(range: MemoryRange, out: Original): void {
  range.copyTo(0, 8, word, 0);
  out.origLow = readLittleEndian(word, 0);
  out.origHigh = readLittleEndian(word, 4);
}

/**
 * Executes COMPARE_SWAP or FETCH_ADD on the u64 at the start of the range; {@link readHostU64} has filled `out`.
 * In memory of several threads or processes it is atomic to their `Atomics`, and `out` is what it held at that moment.
 */
export function executeAtomic(packet: RocePacket, range: MemoryRange, out: Original): void {
  const shared = range.sharedLongs();
  if (shared !== undefined && IS_LITTLE_ENDIAN) {
    const before = executeShared(packet, shared.longs, shared.index);
    out.origHigh = Number(before >> 32n);
    out.origLow = Number(before & 0xffff_ffffn);
    return;
  }
  apply(packet, out, range);
}

/** ATOMIC WRITE: places eight bytes so that no reader of memory of several threads or processes sees a part. */
export function placeAtomically(range: MemoryRange, from: Uint8Array, fromOffset: number): void {
  const shared = range.sharedLongs();
  if (shared === undefined) {
    range.place(0, from, fromOffset, word.length);
    return;
  }
  copyBytes(from, fromOffset, word, 0, word.length);
  Atomics.store(shared.longs, shared.index, wordAsLong[0]);
}

function executeShared(packet: RocePacket, longs: BigUint64Array, index: number): bigint {
  const swapOrAdd = u64(packet.swapHigh, packet.swapLow);
  if (packet.opcode === RC_FETCH_ADD) return Atomics.add(longs, index, swapOrAdd);
  return Atomics.compareExchange(longs, index, u64(packet.compareHigh, packet.compareLow), swapOrAdd);
}

function u64(high: number, low: number): bigint {
  return (BigInt(high) << 32n) | BigInt(low);
}

function apply(packet: RocePacket, original: Original, range: MemoryRange): void {
  if (packet.opcode === RC_FETCH_ADD) {
    const low = original.origLow + packet.swapLow;
    const carry = low > 0xffffffff ? 1 : 0;
    placeHostU64(range, (original.origHigh + packet.swapHigh + carry) >>> 0, low >>> 0);
  } else if (original.origHigh === packet.compareHigh && original.origLow === packet.compareLow) {
    placeHostU64(range, packet.swapHigh, packet.swapLow);
  }
}

function placeHostU64(range: MemoryRange, high: number, low: number): void {
  writeHostU64(word, 0, high, low);
  range.place(0, word, 0, 8);
}

export function writeHostU64(b: Uint8Array, o: number, high: number, low: number): void {
  writeLittleEndian(b, o, low);
  writeLittleEndian(b, o + 4, high);
}

function readLittleEndian(b: Uint8Array, o: number): number {
  return (b[o] | (b[o + 1] << 8) | (b[o + 2] << 16) | (b[o + 3] << 24)) >>> 0;
}

function writeLittleEndian(b: Uint8Array, o: number, value: number): void {
  b[o] = value;
  b[o + 1] = value >>> 8;
  b[o + 2] = value >>> 16;
  b[o + 3] = value >>> 24;
}
