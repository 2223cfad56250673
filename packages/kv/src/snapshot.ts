/**
 * A snapshot: the entries of a store at one moment, little-endian:
 *
 *     magic 8   layout 4   zero 4   taken 8   entries 8   buckets 4   seed 4   CRC-32C 4   | records
 *
 * Records are those of `record.ts`, in table order, so a store with as many buckets and the same seed always has room.
 * Times are milliseconds since 1970, because the next owner has another monotonic clock. Checksums and the count reveal
 * a cut or damaged file.
 */

import { crc32c, RoceError } from 'rocev2/internal/core';
import type { Geometry } from './geometry.js';
import { decodeRecord, encodeRecord, type KvRecord, lengthOfRecord, RECORD_HEAD_BYTES } from './record.js';
import { readVersion, writeVersion } from './slot.js';

const MAGIC = 'rocev2ks';
const LAYOUT_VERSION = 1;
const HEADER_BYTES = 44;
const CHECKED_BYTES = 40;
/** Longer than any record of a store: a length beyond it is damage. */
const RECORD_BYTES_MAX = 2 << 20;
const PIECE_BYTES = 1 << 20;

/** Between the owner's clock and the time of day, both in milliseconds. */
export interface SnapshotTime {
  readonly nowMs: number;
  readonly wallMs: number;
}

export type SnapshotTable = Pick<Geometry, 'buckets' | 'seed'>;

export interface Snapshot extends SnapshotTable {
  readonly records: AsyncGenerator<KvRecord, void, undefined>;
}

/**
 * The bytes of a snapshot, in pieces, as copies: the store may be written at once. `records` are in the order of the
 * table; their times are the owner's clock.
 */
export function encodeSnapshot(
  records: Iterable<KvRecord>,
  { buckets, seed }: SnapshotTable,
  { nowMs, wallMs }: SnapshotTime,
): Buffer[] {
  const header = Buffer.alloc(HEADER_BYTES);
  const pieces = [header];
  let piece: Buffer[] = [];
  let pieceBytes = 0;
  let entries = 0;
  const endPiece = () => {
    pieces.push(Buffer.concat(piece));
    piece = [];
    pieceBytes = 0;
  };
  for (const record of records) {
    const expiresMs = record.expiresMs === 0 ? 0 : Math.ceil(record.expiresMs - nowMs + wallMs);
    const bytes = encodeRecord({ ...record, expiresMs });
    piece.push(bytes);
    pieceBytes += bytes.length;
    entries++;
    if (pieceBytes >= PIECE_BYTES) endPiece();
  }
  endPiece();
  header.write(MAGIC, 0, 'latin1');
  header.writeUInt32LE(LAYOUT_VERSION, 8);
  writeVersion(header, 16, Math.floor(wallMs));
  writeVersion(header, 24, entries);
  header.writeUInt32LE(buckets, 32);
  header.writeUInt32LE(seed, 36);
  header.writeUInt32LE(crc32c(header.subarray(0, CHECKED_BYTES)), CHECKED_BYTES);
  return pieces;
}

export async function decodeSnapshot(pieces: AsyncIterable<Buffer>): Promise<Snapshot> {
  const source = pieces[Symbol.asyncIterator]();
  let bytes: Buffer = Buffer.alloc(0);
  while (bytes.length < HEADER_BYTES) {
    const { done, value } = await source.next();
    if (done === true) throw bytes.length >= MAGIC.length && isOurs(bytes) ? damaged('its header is cut') : foreign();
    bytes = Buffer.concat([bytes, value]);
  }
  checkHeader(bytes);
  const rest = recordsOf(source, bytes.subarray(HEADER_BYTES), readVersion(bytes, 24));
  return { buckets: bytes.readUInt32LE(32), seed: bytes.readUInt32LE(36), records: rest };
}

async function* recordsOf(
  source: AsyncIterator<Buffer>,
  begin: Buffer,
  count: number,
): AsyncGenerator<KvRecord, void, undefined> {
  let bytes = begin;
  for (let left = count; left > 0; ) {
    const first = firstRecord(bytes);
    if (first !== undefined) {
      yield first.record;
      bytes = bytes.subarray(first.length);
      left--;
      continue;
    }
    const { done, value } = await source.next();
    if (done === true) throw damaged(`it ends before its last ${left} records`);
    bytes = Buffer.concat([bytes, value]);
  }
  if (bytes.length > 0 || (await source.next()).done !== true) throw damaged('it has more data after its last record');
}

function firstRecord(bytes: Buffer): { readonly record: KvRecord; readonly length: number } | undefined {
  if (bytes.length < RECORD_HEAD_BYTES) return undefined;
  const length = lengthOfRecord(bytes);
  if (length > RECORD_BYTES_MAX) throw damaged('a record has an impossible length');
  if (length > bytes.length) return undefined;
  const record = decodeRecord(bytes);
  if (record === undefined) throw damaged('the checksum of a record is wrong');
  return { record, length };
}

function isOurs(header: Buffer): boolean {
  return header.toString('latin1', 0, MAGIC.length) === MAGIC;
}

function checkHeader(header: Buffer): void {
  if (!isOurs(header)) throw foreign();
  const layout = header.readUInt32LE(8);
  if (layout !== LAYOUT_VERSION)
    throw foreign(`it has layout ${layout}, and this version of rocev2 reads layout ${LAYOUT_VERSION}`);
  if (crc32c(header.subarray(0, CHECKED_BYTES)) !== header.readUInt32LE(CHECKED_BYTES))
    throw damaged('the checksum of its header is wrong');
}

function foreign(what = 'it is not a snapshot of @rocev2/kv'): RoceError {
  return new RoceError('ERR_ROCE_MISMATCH', what, 'name another file, or move this one away to begin with nothing');
}

function damaged(what: string): RoceError {
  const hint = 'put back a copy of the file, or move it away to begin with nothing';
  return new RoceError('ERR_ROCE_MALFORMED', `it is damaged: ${what}`, hint);
}
