/**
 * Reads a disk from its streams after a crash or a clean shutdown: the last root, its pages, and the log from the
 * root's position on. This needs no ownership, so a snapshot of a disk in use is made the same way.
 */

import { RpcError } from '@rocev2/rpc';
import type { ExtentReader } from '../extent-reader.js';
import type { ExtentPlace } from '../messages.js';
import { BLOCK_BYTES, dataIn } from '../record.js';
import type { Location } from '../stream-writer.js';
import { BlockMap, PAGE_BYTES, recordOf } from './block-map.js';
import { applyLogRecord, decodeLogRecord } from './log-records.js';
import { decodeRoot, type MapRoot } from './map-records.js';

const DEPTH = 16;

export interface FoundRoot extends MapRoot {
  readonly extent: number;
  readonly offset: number;
}

export interface RecoveredDisk {
  readonly map: BlockMap;
  readonly position: Location | undefined;
}

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
 * Reads a disk from its last root and the extents of its log, all of which are sealed. There must not have been a later
 * root when the log had these extents: extents after a root are released as soon as there is another one, and with them
 * the records that say where blocks were moved from.
 */
export async function recoverDisk(
  reader: ExtentReader,
  root: MapRoot,
  logExtents: readonly ExtentPlace[],
): Promise<RecoveredDisk> {
  const map = BlockMap.forDisk(root.disk.sizeBytes);
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

/** All of them, those appended twice included: the last place of a block is the one that its owner had. */
async function replay(
  reader: ExtentReader,
  { position }: MapRoot,
  map: BlockMap,
  extents: readonly ExtentPlace[],
): Promise<Location | undefined> {
  const first = position === undefined ? 0 : extents.findIndex(({ extent }) => extent === position.extent);
  if (first < 0) throw new RpcError('MISSING', `the log continues in extent ${position!.extent}, which is gone`);
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
