/**
 * Records of a disk in its log. A record of the stream begins with blocks of the disk, so that one CRC of the record,
 * which the client computed, covers each of them. Entries after the blocks describe them. Little-endian:
 *
 *     blocks of 4 KiB
 *     entries of 16 bytes
 *     magic 4   kind 4   number of entries 4   zero 4
 *
 * | kind | blocks | entry: 8, 4, 4 bytes |
 * |---|---|---|
 * | write | those of its entry | first block, number of blocks, 0 |
 * | clear | none | first block, number of blocks, 0 |
 * | move | one for each entry | block, extent and word of the place where it was |
 *
 * A moved block counts only if the map still has the block at its former position: otherwise a newer write has replaced
 * it.
 */

import { RpcError } from '@rocev2/rpc';
import { blockCrcs } from '../record.js';
import type { Location } from '../stream-writer.js';
import { type BlockMap, blockLocation, DISK_BLOCK_BYTES, type Place } from './block-map.js';

export type LogRecord =
  | {
      readonly kind: 'write';
      readonly block: number;
      readonly count: number;
    }
  | {
      readonly kind: 'clear';
      readonly block: number;
      readonly count: number;
    }
  | {
      readonly kind: 'move';
      readonly moves: ReadonlyArray<{ readonly block: number; readonly from: Place }>;
    };

const MAGIC = 0x4c_73_44_52; // "RDsL"
const KINDS = ['write', 'clear', 'move'] as const;
const ENTRY_BYTES = 16;
const END_BYTES = 16;

export function encodeLogRecord(
  record: LogRecord,
  blocks: readonly Uint8Array[],
  crcs?: readonly number[] | Uint32Array,
): { readonly data: Buffer; readonly crcs: Uint32Array } {
  const entries = entriesOf(record);
  const tail = Buffer.alloc(ENTRY_BYTES * entries.length + END_BYTES);
  for (const [k, [block, a, b]] of entries.entries()) {
    tail.writeBigUInt64LE(BigInt(block), ENTRY_BYTES * k);
    tail.writeUInt32LE(a, ENTRY_BYTES * k + 8);
    tail.writeUInt32LE(b, ENTRY_BYTES * k + 12);
  }
  const end = tail.length - END_BYTES;
  tail.writeUInt32LE(MAGIC, end);
  tail.writeUInt32LE(KINDS.indexOf(record.kind), end + 4);
  tail.writeUInt32LE(entries.length, end + 8);
  const data = Buffer.concat([...blocks, tail]);
  if (crcs === undefined) return { data, crcs: blockCrcs(data) };
  return { data, crcs: Uint32Array.from([...crcs, ...blockCrcs(tail)]) };
}

function entriesOf(record: LogRecord): ReadonlyArray<readonly [number, number, number]> {
  if (record.kind !== 'move') return [[record.block, record.count, 0]];
  return record.moves.map(({ block, from }) => [block, from.extent, from.word] as const);
}

export function decodeLogRecord(data: Buffer, diskBlocks: number): LogRecord {
  const end = data.length - END_BYTES;
  if (end < 0 || data.readUInt32LE(end) !== MAGIC) throw foreign();
  const kind = KINDS[data.readUInt32LE(end + 4)];
  const count = data.readUInt32LE(end + 8);
  const start = end - ENTRY_BYTES * count;
  if (kind === undefined || count === 0 || start < 0 || start % DISK_BLOCK_BYTES !== 0) throw foreign();
  const entries = Array.from({ length: count }, (_, k) => ({
    block: Number(data.readBigUInt64LE(start + ENTRY_BYTES * k)),
    a: data.readUInt32LE(start + ENTRY_BYTES * k + 8),
    b: data.readUInt32LE(start + ENTRY_BYTES * k + 12),
  }));
  const blocks = start / DISK_BLOCK_BYTES;
  const [{ block, a }] = entries;
  if (kind === 'move') {
    if (blocks !== count || entries.some((entry) => entry.block >= diskBlocks)) throw foreign();
    return { kind, moves: entries.map((entry) => ({ block: entry.block, from: { extent: entry.a, word: entry.b } })) };
  }
  if (count !== 1 || blocks !== (kind === 'write' ? a : 0) || block + a > diskBlocks) throw foreign();
  return { kind, block, count: a };
}

function foreign(): RpcError {
  return new RpcError('DAMAGED', 'the log of the disk has a record that is none of a disk');
}

export function applyLogRecord(map: BlockMap, record: LogRecord, at: Location): void {
  if (record.kind === 'clear') map.clear(record.block, record.count);
  else if (record.kind === 'write')
    for (let k = 0; k < record.count; k++) map.set(record.block + k, blockLocation(at, k));
  else
    for (const [k, { block, from }] of record.moves.entries())
      if (map.isAt(block, from)) map.set(block, blockLocation(at, k));
}

export function blocksIn(record: LogRecord): readonly number[] {
  if (record.kind === 'move') return record.moves.map(({ block }) => block);
  if (record.kind === 'clear') return [];
  return Array.from({ length: record.count }, (_, k) => record.block + k);
}
