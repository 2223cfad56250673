/**
 * What a disk writes to the stream of its map. Little-endian:
 *
 * - pages: the bytes of pages of the map, then the number of each in 4 bytes, then magic 4, number of pages 4
 * - a root: a directory of 8 bytes for each page of the disk, then JSON, then magic 4, bytes of JSON 4
 *
 * A root is a checkpoint: what the disk is, where its pages are, and up to which place of the log they are complete.
 * They may know more: records of the log that come after this place may be applied once more, and the map is the same.
 */

import type { Location } from '../stream-writer.js';
import { PAGE_BYTES } from './block-map.js';

/** Description of a disk. */
export interface DiskMetadata {
  /** Its name, which is also that of its streams. */
  readonly name: string;
  /** RFC 9562. */
  readonly uuid: string;
  /** Size in bytes, a multiple of 512; it never changes. */
  readonly sizeBytes: number;
  /** The content never changes. */
  readonly isSnapshot: boolean;
  /** The disk that it was made from; missing if it was made empty. */
  readonly parent?: string;
}

export interface MapRoot {
  readonly disk: DiskMetadata;
  /** Where the log continues: the pages include everything before it. */
  readonly position?: Location;
  readonly directory: Uint32Array;
}

const PAGES_MAGIC = 0x67_50_44_52; // "RDPg"
const ROOT_MAGIC = 0x74_52_44_52; // "RDRt"
const END_BYTES = 8;

export function encodePages(pages: ReadonlyArray<{ readonly number: number; readonly bytes: Buffer }>): Buffer {
  const tail = Buffer.alloc(4 * pages.length + END_BYTES);
  for (const [k, { number }] of pages.entries()) tail.writeUInt32LE(number, 4 * k);
  tail.writeUInt32LE(PAGES_MAGIC, 4 * pages.length);
  tail.writeUInt32LE(pages.length, 4 * pages.length + 4);
  return Buffer.concat([...pages.map(({ bytes }) => bytes), tail]);
}

export const STORED_PAGE_BYTES = PAGE_BYTES + 512;

export function encodeRoot({ disk, position, directory }: MapRoot): Buffer {
  const text = Buffer.from(JSON.stringify({ disk, position }));
  const bytes = Buffer.alloc(4 * directory.length + text.length + END_BYTES);
  for (const [k, word] of directory.entries()) bytes.writeUInt32LE(word, 4 * k);
  text.copy(bytes, 4 * directory.length);
  bytes.writeUInt32LE(ROOT_MAGIC, bytes.length - END_BYTES);
  bytes.writeUInt32LE(text.length, bytes.length - 4);
  return bytes;
}

export function decodeRoot(data: Buffer): MapRoot | undefined {
  const end = data.length - END_BYTES;
  if (end < 0 || data.readUInt32LE(end) !== ROOT_MAGIC) return undefined;
  const start = end - data.readUInt32LE(end + 4);
  const { disk, position } = JSON.parse(data.toString('utf8', start, end)) as Omit<MapRoot, 'directory'>;
  const directory = Uint32Array.from({ length: start / 4 }, (_, k) => data.readUInt32LE(4 * k));
  return { disk, directory, ...(position !== undefined && { position }) };
}
