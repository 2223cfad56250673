/**
 * How a disk is read from its streams, after a crash as after an orderly end: the last root of the map, its pages, and the records of the log from the position of
 * the root on. Nobody needs to own the disk for that, so that a snapshot of a disk in use is made in the same way.
 */

import { RpcError } from '@rocev2/rpc';
import type { ExtentReader } from '../extent-reader.js';
import type { ExtentPlace } from '../messages.js';
import { BLOCK_BYTES, dataIn } from '../record.js';
import type { Location } from '../stream-writer.js';
import { BlockMap, DISK_BLOCK_BYTES, PAGE_BYTES, recordOf } from './block-map.js';
import { applyLogRecord, decodeLogRecord } from './log-records.js';
import { decodeRoot, type MapRoot } from './map-records.js';

/** Pages read at a time. */
const DEPTH = 16;

/** A root, and where it is. */
export interface FoundRoot extends MapRoot {
  /** Its extent in the stream of the map. */
  readonly extent: number;
  /** Its place in the extent. */
  readonly offset: number;
}

/** A disk as its streams have it. */
export interface RecoveredDisk {
  /** Where all blocks are. */
  readonly map: BlockMap;
  /** Behind the last record of the log. Undefined: there is none. */
  readonly position: Location | undefined;
}

/** The last root of a map. Rejects with MISSING if there is none: the disk was never finished. */
export async function findRoot(reader: ExtentReader, extents: readonly ExtentPlace[]): Promise<FoundRoot> {
  for (const place of [...extents].reverse()) {
    reader.learn(place);
    let found: FoundRoot | undefined;
    for await (const { head, bytes } of reader.records(place.extent)) {
      const root = decodeRoot(dataIn(bytes, head));
      if (root !== undefined) found = { ...root, extent: place.extent, offset: head.offset };
    }
    if (found !== undefined) return found;
  }
  throw new RpcError('MISSING', 'the disk was never finished: its map has no root');
}

/**
 * Reads a disk from its last root and the extents of its log, all of which are sealed. There must not have been a later root when the log had these extents: extents
 * behind a root are given back as soon as there is another one, and with them the records that say where blocks were moved from. Rejects with MISSING if parts are
 * gone, and with DAMAGED or UNREACHABLE if they cannot be read.
 */
export async function recoverDisk(
  reader: ExtentReader,
  root: MapRoot,
  logExtents: readonly ExtentPlace[],
): Promise<RecoveredDisk> {
  const map = new BlockMap(root.disk.sizeBytes / DISK_BLOCK_BYTES);
  await loadPages(reader, root, map);
  const position = await replay(reader, root, map, logExtents);
  const known = new Set(logExtents.map(({ extent }) => extent));
  for (const extent of map.liveExtents())
    if (!known.has(extent))
      throw new RpcError(
        'MISSING',
        `the disk '${root.disk.name}' needs extent ${extent}, which its log does not have; if it is a copy that was never finished, 'rocev2 extents disk rm ${root.disk.name}' deletes it`,
      );
  return { map, position };
}

async function loadPages(reader: ExtentReader, { directory }: MapRoot, map: BlockMap): Promise<void> {
  const blocks = PAGE_BYTES / BLOCK_BYTES;
  let next = 0;
  const load = async () => {
    while (next < directory.length / 2) {
      const number = next++;
      const place = { extent: directory[2 * number], word: directory[2 * number + 1] };
      if (place.extent === 0) continue;
      const { offset, index } = recordOf(place);
      map.loadPage(number, (await reader.read(place.extent, offset, index, blocks)).data);
    }
  };
  await Promise.all(Array.from({ length: DEPTH }, load));
}

/** Applies the records of the log that the root does not know. All of them, those appended twice included: the last place of a block is the one that its owner had. */
async function replay(
  reader: ExtentReader,
  { position }: MapRoot,
  map: BlockMap,
  extents: readonly ExtentPlace[],
): Promise<Location | undefined> {
  const first = position === undefined ? 0 : extents.findIndex(({ extent }) => extent === position.extent);
  if (first < 0) throw new RpcError('MISSING', `the log goes on in extent ${position!.extent}, which is gone`);
  let end = position;
  for (const place of extents.slice(first)) {
    const { extent } = place;
    reader.learn(place);
    const from = extent === position?.extent ? position.offset : 0;
    end = { extent, offset: from };
    for await (const { head, bytes } of reader.records(extent, from)) {
      applyLogRecord(map, decodeLogRecord(dataIn(bytes, head), map.blocks), head);
      end = { extent, offset: head.offset + bytes.length };
    }
  }
  return end;
}
