/**
 * Gives the space of overwritten blocks back. An extent of the log in which nothing is needed is taken out of the stream, and the manager deletes it once no snapshot
 * or clone has it. Of extents that are mostly garbage the blocks that are needed are written again at the end of the log (Rosenblum and Ousterhout, "The Design and
 * Implementation of a Log-Structured File System", ACM TOCS 1992, section 3.4: those with the most garbage first).
 *
 * An extent may go when the last durable root is behind it: whoever reads the disk then finds all records in the rest of the log that tell of its blocks' new places.
 * What others have, too, is not cleaned: its space would not come back.
 */

import type { ExtentPlace } from '../messages.js';
import { dataIn } from '../record.js';
import type { Location } from '../stream-writer.js';
import { type BlockMap, blockAddressOf, DISK_BLOCK_BYTES, type Place, RECORD_BLOCKS_MAX } from './block-map.js';
import { type DiskParts, logOf } from './disk-parts.js';
import { blocksIn, decodeLogRecord } from './log-records.js';

/** Share of the log that may be garbage. */
const GARBAGE_MAX = 0.4;
/** Extents of garbage that are not worth any work. */
const SPARE_EXTENTS = 2;
/** An extent is left alone if so much of it is needed. */
const LIVE_MAX = 0.85;
/** Bytes of a block in the log, with its part of the record, at least. */
const STORED_BLOCK_BYTES = DISK_BLOCK_BYTES + 4;

/** A block that is to be written again. */
export interface MovedBlock {
  /** Which block of the disk. */
  readonly block: number;
  /** Where it is. */
  readonly from: Place;
  /** Its bytes. */
  readonly data: Buffer;
}

/** What the cleaner needs of its disk. */
export interface CleanedDisk {
  /** That of its streams. */
  readonly name: string;
  /** Where its blocks are. */
  readonly map: BlockMap;
  /** Epoch of its log. */
  readonly epoch: number;
  /** Bytes at which an extent is full. */
  readonly extentBytes: number;
  /** Where the last durable root has the log go on. */
  readonly position: Location | undefined;
  /** The extent that is written now. */
  readonly current: number | undefined;
  /** Writes blocks again where they are still needed; at most 256 of them. */
  move(blocks: readonly MovedBlock[]): Promise<void>;
}

/** What a cleaner counts. */
export interface CleanerCounters {
  /** Extents taken out of the log. */
  freed: number;
  /** Blocks written again. */
  moved: number;
}

/** The cleaner of one disk. */
export class Cleaner {
  /** Since the disk was opened. */
  readonly counters: CleanerCounters = { freed: 0, moved: 0 };
  readonly #parts: DiskParts;
  readonly #disk: CleanedDisk;

  constructor(parts: DiskParts, disk: CleanedDisk) {
    this.#parts = parts;
    this.#disk = disk;
  }

  /** Frees what is free, and moves blocks until little enough is garbage. Rejects if the manager or all replicas of an extent are out of reach. */
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

  /** Extents of the log before the position of the last durable root. */
  #settled(extents: readonly ExtentPlace[]): ExtentPlace[] {
    const { position, current } = this.#disk;
    const end = extents.findIndex(({ extent }) => extent === position?.extent);
    return extents
      .slice(0, Math.max(0, end))
      .filter(({ extent, sealed }) => extent !== current && sealed !== undefined);
  }

  async #free(places: readonly ExtentPlace[]): Promise<void> {
    const { manager, timing, reader } = this.#parts;
    const extents = places.map(({ extent }) => extent).filter((extent) => !this.isNeeded(extent));
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

  /** Moves all blocks that are needed out of an extent. */
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
        const from = blockAddressOf(head, index);
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
