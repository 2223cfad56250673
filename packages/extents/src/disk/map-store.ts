/**
 * Writes checkpoints of a map to its stream: the changed pages, then a root, while the map keeps changing. A root
 * records where the log continues after everything its pages certainly contain; later records may be applied twice.
 */

import { codeOf } from '../messages.js';
import { type Location, StreamWriter } from '../stream-writer.js';
import { type BlockMap, blockLocation, DISK_BLOCK_BYTES, PAGE_BLOCKS, PAGE_BYTES } from './block-map.js';
import { type DiskParts, mapOf } from './disk-parts.js';
import { type DiskMetadata, encodePages, encodeRoot, type MapRoot, STORED_PAGE_BYTES } from './map-records.js';

const PAGES_MAX = 16;
const PAGE_RECORD_BLOCKS = PAGE_BYTES / DISK_BLOCK_BYTES;
/** The stream is cleaned when it has this many extents more than twice as many as its pages need. */
const SPARE_EXTENTS = 3;

export class MapStore {
  checkpoints = 0;
  position: Location | undefined;
  readonly #parts: DiskParts;
  readonly #name: string;
  readonly #owner: string;
  readonly #map: BlockMap;
  readonly #directory: Uint32Array;
  #writer: StreamWriter;
  /** Extents of the stream, in order. */
  #extents: number[];
  #rootExtent = 0;

  private constructor(
    { parts, name, owner }: { parts: DiskParts; name: string; owner: string },
    map: BlockMap,
    opened: { readonly writer: StreamWriter; readonly extents: readonly number[] },
  ) {
    this.#parts = parts;
    this.#name = name;
    this.#owner = owner;
    this.#map = map;
    this.#writer = opened.writer;
    this.#extents = [...opened.extents];
    this.#directory = new Uint32Array(2 * Math.ceil(map.blocks / PAGE_BLOCKS));
  }

  static of(
    place: { readonly parts: DiskParts; readonly name: string; readonly owner: string },
    map: BlockMap,
    opened: { readonly writer: StreamWriter; readonly extents: readonly number[] },
    root?: MapRoot & { readonly extent: number },
  ): MapStore {
    const store = new MapStore(place, map, opened);
    if (root === undefined) return store;
    store.#directory.set(root.directory);
    store.#rootExtent = root.extent;
    store.position = root.position;
    return store;
  }

  get pageExtents(): Set<number> {
    const extents = new Set<number>();
    for (let k = 0; k < this.#directory.length; k += 2) if (this.#directory[k] !== 0) extents.add(this.#directory[k]);
    return extents;
  }

  get epoch(): number {
    return this.#writer.epoch;
  }

  /** `isOwner` rejects if another client owns the disk. Rejects with FENCED, and then has changed nothing. */
  async checkpoint(
    disk: DiskMetadata,
    position: Location | undefined,
    isOwner: () => Promise<unknown> = async () => {},
  ): Promise<void> {
    const pages = this.#map.takeDirty();
    try {
      await this.#writePages([...pages]);
      const at = await this.#writer.append(encodeRoot(this.rootOf(disk, position)));
      this.#rootExtent = at.extent;
      this.position = position;
      this.checkpoints++;
      // The nodes learn by the next record that the root is committed, and make it readable.
      await this.#writer.append(Buffer.from('end'));
      await this.#giveBack();
    } catch (error) {
      this.#map.touch(pages);
      if (codeOf(error) !== 'FENCED') throw error;
      // A new owner may have opened the map in the meantime.
      await isOwner();
      await this.#reopen();
      throw error;
    }
  }

  /** What a checkpoint says. @internal */
  rootOf(disk: DiskMetadata, position: Location | undefined): MapRoot {
    return { disk, directory: this.#directory, ...(position !== undefined && { position }) };
  }

  async #reopen(): Promise<void> {
    const { writer, extents } = await StreamWriter.open(
      { stream: mapOf(this.#name), owner: this.#owner, takeOver: true },
      this.#parts,
    );
    this.#writer = writer;
    this.#extents = extents.map(({ extent }) => extent);
  }

  async #writePages(pages: readonly number[]): Promise<void> {
    for (let k = 0; k < pages.length; k += PAGES_MAX) {
      const there: { number: number; bytes: Buffer }[] = [];
      for (const number of pages.slice(k, k + PAGES_MAX)) {
        const bytes = this.#map.pageBytes(number);
        if (bytes === undefined) this.#directory.fill(0, 2 * number, 2 * number + 2);
        else there.push({ number, bytes });
      }
      if (there.length === 0) continue;
      const at = await this.#writer.append(encodePages(there));
      for (const [index, { number }] of there.entries()) {
        const { extent, word } = blockLocation(at, index * PAGE_RECORD_BLOCKS);
        this.#directory[2 * number] = extent;
        this.#directory[2 * number + 1] = word;
      }
    }
  }

  async #giveBack(): Promise<void> {
    const { manager, timing } = this.#parts;
    const current = this.#writer.extent?.extent;
    if (current !== undefined && !this.#extents.includes(current)) {
      // There may be others between: failovers leave extents without a record.
      const { extents } = await manager.call('locate', { stream: mapOf(this.#name) }, timing.callMs);
      this.#extents = extents.map(({ extent }) => extent);
    }
    const needed = this.pageExtents.add(this.#rootExtent);
    if (current !== undefined) needed.add(current);
    const gone = this.#extents.filter((extent) => !needed.has(extent));
    if (gone.length > 0) {
      const request = { stream: mapOf(this.#name), epoch: this.epoch, extents: gone };
      await manager.call('drop', request, timing.callMs);
      this.#extents = this.#extents.filter((extent) => needed.has(extent));
      for (const extent of gone) this.#parts.reader.forget(extent);
    }
    const enough = Math.ceil((this.#map.memoryBytes / PAGE_BYTES) * (STORED_PAGE_BYTES / this.#writer.extentBytes));
    const [oldest] = this.#extents;
    if (this.#extents.length > SPARE_EXTENTS + 2 * enough && oldest !== current) this.#map.touch(this.#pagesIn(oldest));
  }

  #pagesIn(extent: number): number[] {
    const found: number[] = [];
    for (let k = 0; k < this.#directory.length; k += 2) if (this.#directory[k] === extent) found.push(k / 2);
    return found;
  }

  endWithLease(): void {
    this.#writer.endWithLease();
  }

  close(): Promise<void> {
    return this.#writer.close();
  }
}
