/**
 * The record: what one append writes to an extent, the same bytes on every replica. Little-endian:
 *
 *     magic 4   version 2   zero 2   extent 8   offset 8   length 4   blocks 4
 *     writer 8   sequence 8   committed 8   zero 4   crc 4
 *     CRC-32C of each block of 4 KiB of the data, 4 each
 *     data, zeros up to a multiple of 512
 *
 * `crc` covers the header before it and the list of CRCs, and the list covers the data: the CRCs that a program passed
 * in are those that it gets back. A record names its extent and its place, so that a write that went elsewhere is not
 * taken for it. It begins at a sector of its own, so that a torn write of one record does not touch another. `writer`
 * and `sequence` together are the identity of the append (opId); an append that is repeated has the same.
 */

import { RpcError } from '@rocev2/rpc';
import { crc32c } from 'rocev2/internal/core';

export const BLOCK_BYTES = 4096;
export const RECORD_ALIGN = 512;
export const HEADER_BYTES = 64;
export const RECORD_DATA_MAX = 4 << 20;

const MAGIC = 0x44_52_78_45; // "ExRD"
const VERSION = 1;
const LENGTH_AT = 24;
const CRC_AT = 60;

export interface RecordHead {
  readonly extent: number;
  /** Where it begins in its extent, bytes. */
  readonly offset: number;
  /** Bytes of data. */
  readonly length: number;
  /** Who appended it: the epoch of the stream's owner. */
  readonly writer: number;
  /** Which append of its writer it is; later ones have larger numbers, in every extent. */
  readonly sequence: number;
  /** Everything before this place in the extent was on all replicas when the record was sent. */
  readonly committed: number;
}

export function blocksOf(length: number): number {
  return Math.ceil(length / BLOCK_BYTES);
}

export function dataAt(length: number): number {
  return HEADER_BYTES + 4 * blocksOf(length);
}

export function recordBytes(length: number): number {
  return Math.ceil((dataAt(length) + length) / RECORD_ALIGN) * RECORD_ALIGN;
}

export function blockCrcs(data: Uint8Array): Uint32Array {
  return Uint32Array.from({ length: blocksOf(data.length) }, (_, block) =>
    crc32c(data.subarray(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES)),
  );
}

/** `crcs` are those of the blocks of `data`, which are believed here and checked by each node. */
export function encodeRecord(head: Omit<RecordHead, 'length'>, data: Uint8Array, crcs = blockCrcs(data)): Buffer {
  const bytes = Buffer.alloc(recordBytes(data.length));
  bytes.writeUInt32LE(MAGIC, 0);
  bytes.writeUInt16LE(VERSION, 4);
  bytes.writeBigUInt64LE(BigInt(head.extent), 8);
  bytes.writeBigUInt64LE(BigInt(head.offset), 16);
  bytes.writeUInt32LE(data.length, LENGTH_AT);
  bytes.writeUInt32LE(crcs.length, 28);
  bytes.writeBigUInt64LE(BigInt(head.writer), 32);
  bytes.writeBigUInt64LE(BigInt(head.sequence), 40);
  bytes.writeBigUInt64LE(BigInt(head.committed), 48);
  for (const [block, crc] of crcs.entries()) bytes.writeUInt32LE(crc, HEADER_BYTES + 4 * block);
  bytes.set(data, dataAt(data.length));
  bytes.writeUInt32LE(headCrc(bytes, data.length), CRC_AT);
  return bytes;
}

function headCrc(bytes: Buffer, length: number): number {
  return crc32c(bytes.subarray(HEADER_BYTES, dataAt(length)), crc32c(bytes.subarray(0, CRC_AT)));
}

export function headBytesIn(bytes: Buffer): number | undefined {
  if (bytes.length < HEADER_BYTES || bytes.readUInt32LE(0) !== MAGIC || bytes.readUInt16LE(4) !== VERSION)
    return undefined;
  const length = bytes.readUInt32LE(LENGTH_AT);
  if (length > RECORD_DATA_MAX || bytes.readUInt32LE(28) !== blocksOf(length)) return undefined;
  return dataAt(length);
}

export function wholeBytesIn(bytes: Buffer): number | undefined {
  return headBytesIn(bytes) === undefined ? undefined : recordBytes(bytes.readUInt32LE(LENGTH_AT));
}

export async function readRecords(read: (bytes: number) => Promise<Buffer>, bytesMax: number): Promise<Buffer> {
  const bytes = await read(bytesMax);
  const whole = wholeBytesIn(bytes);
  return whole !== undefined && whole > bytes.length ? read(whole) : bytes;
}

export function readHead(bytes: Buffer, extent: number, offset: number): RecordHead | undefined {
  const headBytes = headBytesIn(bytes);
  if (headBytes === undefined || bytes.length < headBytes) return undefined;
  const length = bytes.readUInt32LE(LENGTH_AT);
  if (bytes.readUInt32LE(CRC_AT) !== headCrc(bytes, length)) return undefined;
  const head = {
    extent: Number(bytes.readBigUInt64LE(8)),
    offset: Number(bytes.readBigUInt64LE(16)),
    length,
    writer: Number(bytes.readBigUInt64LE(32)),
    sequence: Number(bytes.readBigUInt64LE(40)),
    committed: Number(bytes.readBigUInt64LE(48)),
  };
  return head.extent === extent && head.offset === offset ? head : undefined;
}

export function crcsIn(bytes: Buffer, first: number, end: number): Uint32Array {
  return Uint32Array.from({ length: end - first }, (_, k) => bytes.readUInt32LE(HEADER_BYTES + 4 * (first + k)));
}

export function checkRecord(bytes: Buffer, extent: number, offset: number): RecordHead | undefined {
  const head = readHead(bytes, extent, offset);
  if (head === undefined || bytes.length < recordBytes(head.length)) return undefined;
  const data = dataIn(bytes, head);
  return areBlocksIntact(data, crcsIn(bytes, 0, blocksOf(head.length))) ? head : undefined;
}

export function dataIn(bytes: Buffer, { length }: RecordHead): Buffer {
  return bytes.subarray(dataAt(length), dataAt(length) + length);
}

export function areBlocksIntact(data: Uint8Array, crcs: Uint32Array): boolean {
  for (const [block, crc] of crcs.entries()) {
    if (crc32c(data.subarray(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES)) !== crc) return false;
  }
  return true;
}

export interface WholeRecord {
  readonly head: RecordHead;
  readonly bytes: Buffer;
}

/**
 * The intact records that `bytes` begins with, which are at `offset` of the extent, up to the first one that is damaged
 * or cut off.
 */
export function* intactRecordsIn(
  bytes: Buffer,
  extent: number,
  offset: number,
): Generator<WholeRecord, void, undefined> {
  for (let at = 0; at < bytes.length; ) {
    const rest = bytes.subarray(at);
    const head = checkRecord(rest, extent, offset + at);
    if (head === undefined) return;
    const record = { head, bytes: rest.subarray(0, recordBytes(head.length)) };
    yield record;
    at += record.bytes.length;
  }
}

export function* recordsIn(bytes: Buffer, extent: number, offset: number): Generator<WholeRecord, void, undefined> {
  let at = 0;
  for (const record of intactRecordsIn(bytes, extent, offset)) {
    yield record;
    at += record.bytes.length;
  }
  if (at < bytes.length) throw new RpcError('DAMAGED', `extent ${extent} has no intact record at ${offset + at}`);
}
