/**
 * Reclaims the space of overwritten blocks. An extent of the log without live blocks leaves the stream; the manager
 * deletes it once no snapshot or clone needs it. Extents with the most garbage are compacted first: their live blocks
 * are appended again (Rosenblum and Ousterhout, "The Design and Implementation of a Log-Structured File System", ACM
 * TOCS 1992, section 3.4). An extent may go only when the last durable root is past it, so that a reader finds the
 * blocks' new places in the rest of the log. Extents shared with others are not compacted, because that would free
 * nothing.
 */

import type { ExtentPlace } from '../messages.js';
import { dataIn } from '../record.js';
import type { Location } from '../stream-writer.js';
import { type BlockMap, blockLocation, DISK_BLOCK_BYTES, type Place, RECORD_BLOCKS_MAX } from './block-map.js';
import { type DiskParts, logOf } from './disk-parts.js';
import { blocksIn, decodeLogRecord } from './log-records.js';

const GARBAGE_MAX = 0.4;
const SPARE_EXTENTS = 2;
const LIVE_MAX = 0.85;
/** Bytes of a block in the log, with its part of the record, at least. */
const STORED_BLOCK_BYTES = DISK_BLOCK_BYTES + 4;

export interface MovedBlock {
  readonly block: number;
  readonly from: Place;
  readonly data: Buffer;
}

export interface CleanedDisk {
  readonly name: string;
  readonly map: BlockMap;
  readonly epoch: number;
  readonly extentBytes: number;
  readonly position: Location | undefined;
  readonly current: number | undefined;
  move(blocks: readonly MovedBlock[]): Promise<void>;
}

export interface CleanerCounters {
  freed: number;
  moved: number;
}

export class Cleaner {
  readonly counters: CleanerCounters = { freed: 0, moved: 0 };
  readonly #parts: DiskParts;
  readonly #disk: CleanedDisk;

  constructor(parts: DiskParts, disk: CleanedDisk) {
    this.#parts = parts;
    this.#disk = disk;
  }

  async clean(): Promise<void> {
    const { manager, timing } = this.#parts;
    const { map, extentBytes } = this.#disk;
    const { extents, shared } = await manager.call('locate', { stream: logOf(this.#disk.name) }, timing.callMs);
    const movable = this.#settled(extents);
    await this.#free(movable);
    const mine = movable.filter(({ extent }) => map.liveIn(extent) > 0 && !shared.includes(extent));
    const liveBytes = ({ extent }: ExtentPlace) => map.liveIn(extent) * STORED_BLOCK_BYTES;
    const share = (place: ExtentPlace) => liveBytes(place) / Math.max(1, place.sealed!);
    mine.sort((a, b) => share(a) - share(b));
    let total = mine.reduce((sum, { sealed }) => sum + sealed!, 0);
    let garbage = total - mine.reduce((sum, place) => sum + liveBytes(place), 0);
    for (const place of mine) {
      if (garbage <= Math.max(SPARE_EXTENTS * extentBytes, GARBAGE_MAX * total) || share(place) > LIVE_MAX) return;
      garbage -= place.sealed! - liveBytes(place);
      total -= place.sealed!;
      await this.#empty(place);
      await this.#free([place]);
    }
  }

  #settled(extents: readonly ExtentPlace[]): ExtentPlace[] {
    const { position, current } = this.#disk;
    const end = extents.findIndex(({ extent }) => extent === position?.extent);
    return extents
      .slice(0, Math.max(0, end))
      .filter(({ extent, sealed }) => extent !== current && sealed !== undefined);
  }

  async #free(locations: readonly ExtentPlace[]): Promise<void> {
    const { manager, timing, reader } = this.#parts;
    const extents = locations.map(({ extent }) => extent).filter((extent) => !this.isNeeded(extent));
    if (extents.length === 0) return;
    const { name, epoch } = this.#disk;
    await manager.call('drop', { stream: logOf(name), epoch, extents }, timing.callMs);
    this.counters.freed += extents.length;
    for (const extent of extents) reader.forget(extent);
  }

  /** Whether a block of the disk is in this extent. @internal */
  isNeeded(extent: number): boolean {
    return this.#disk.map.liveIn(extent) > 0;
  }

  async #empty(place: ExtentPlace): Promise<void> {
    const { map } = this.#disk;
    this.#parts.reader.learn(place);
    let batch: MovedBlock[] = [];
    const move = async () => {
      this.counters.moved += batch.length;
      await this.#disk.move(batch);
      batch = [];
    };
    for await (const { head, bytes } of this.#parts.reader.records(place.extent)) {
      const data = dataIn(bytes, head);
      for (const [index, block] of blocksIn(decodeLogRecord(data, map.blocks)).entries()) {
        const from = blockLocation(head, index);
        if (!this.isLive(block, from)) continue;
        const at = index * DISK_BLOCK_BYTES;
        batch.push({ block, from, data: data.subarray(at, at + DISK_BLOCK_BYTES) });
        if (batch.length === RECORD_BLOCKS_MAX) await move();
      }
    }
    if (batch.length > 0) await move();
  }

  /** Whether a block is where the extent has it, and nowhere else. @internal */
  isLive(block: number, from: Place): boolean {
    return this.#disk.map.isAt(block, from);
  }
}
