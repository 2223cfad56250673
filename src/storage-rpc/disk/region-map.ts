/**
 * The write-intent bitmap: a byte for each region of 64 MiB says whether anything was ever written there, and whether it may be changing.
 * A region is marked durably before its first change, and the mark is taken back when all its changes are durable. After a kill or a loss
 * of power only marked regions may have blocks of which it is not known whether they are old or new.
 */

import type { FileHandle } from 'node:fs/promises';
import { PromiseMutex } from '../../core/promise-mutex.js';
import { MAP_OFFSET, REGION_BLOCKS } from './checksum-format.js';
import { readFully, writeFully } from './file-io.js';

/** Something other than zeros was written there, once. */
const USED = 1;
/** Blocks may be changing. */
const MARKED = 2;
/** A mark is taken back when so many syncs have passed without a change, so that regions in use keep it. */
const IDLE_SYNCS = 64;

/** A marked region, as this process uses it. */
interface Use {
  writers: number;
  /** Syncs that had begun when a writer last came or went. */
  syncs: number;
}

/** The map of one disk: held in memory, one byte a region, and written through. */
export class RegionMap {
  readonly #file: FileHandle;
  readonly #states: Uint8Array;
  /** Makes what was written to the file durable. */
  readonly #sync: () => Promise<void>;
  readonly #uses = new Map<number, Use>();
  /** Marks on their way to the file. */
  readonly #marking = new Map<number, Promise<void>>();
  /** Regions whose blocks may be old or new, each with a number that changes when that is found anew. */
  readonly #unsettled = new Map<number, number>();
  #doubts = 0;
  #syncs = 0;
  readonly #writing = new PromiseMutex();

  private constructor(file: FileHandle, states: Uint8Array, sync: () => Promise<void>) {
    this.#file = file;
    this.#states = states;
    this.#sync = sync;
    states.forEach((state, region) => {
      if ((state & MARKED) !== 0) this.doubt(region);
    });
  }

  /** Reads the map for so many blocks; the result takes what makes the file durable. */
  static async load(file: FileHandle, blocks: number): Promise<(sync: () => Promise<void>) => RegionMap> {
    const states = new Uint8Array(Math.ceil(blocks / REGION_BLOCKS));
    await readFully(file, states, MAP_OFFSET);
    return (sync) => new RegionMap(file, states, sync);
  }

  /** Writes a map for so many blocks in which these regions were used and none is marked. */
  static async write(file: FileHandle, blocks: number, used: ReadonlySet<number>): Promise<void> {
    const states = new Uint8Array(Math.ceil(blocks / REGION_BLOCKS));
    for (const region of used) states[region] = USED;
    await writeFully(file, states, MAP_OFFSET);
  }

  /** False: every block there holds zeros. */
  isUsed(region: number): boolean {
    return this.#states[region] !== 0;
  }

  /** Whether it is not known of every block there if it is old or new. */
  isUnsettled(region: number): boolean {
    return this.#unsettled.has(region);
  }

  /** Regions of which that is not known. */
  get unsettled(): number {
    return this.#unsettled.size;
  }

  /** The first of them that `skip` does not have, with the doubt that has to be settled. */
  nextUnsettled(skip: ReadonlySet<number>): { readonly region: number; readonly doubt: number } | undefined {
    for (const [region, doubt] of this.#unsettled) if (!skip.has(region)) return { region, doubt };
    return undefined;
  }

  /** A change there has failed: its blocks may be old or new. */
  doubt(region: number): void {
    this.#unsettled.set(region, ++this.#doubts);
  }

  /** All blocks are known, on file and durable; has no effect if there is a newer doubt. */
  async settle(region: number, doubt: number): Promise<void> {
    if (this.#unsettled.get(region) !== doubt) return;
    this.#unsettled.delete(region);
    // A region that is in use has its mark taken back as any other.
    if (!this.#uses.has(region)) await this.#store(region, USED);
  }

  /** Blocks of the regions are about to change: a promise if that has to be written down first. `leave` follows when it is undefined or resolves. */
  enter(first: number, last: number): Promise<unknown> | undefined {
    let marks: Promise<void>[] | undefined;
    for (let region = first; region <= last; region++) {
      let use = this.#uses.get(region);
      if (use === undefined) {
        use = { writers: 0, syncs: this.#syncs };
        this.#uses.set(region, use);
      }
      use.writers++;
      use.syncs = this.#syncs;
      if ((this.#states[region] & MARKED) !== 0) continue;
      marks ??= [];
      marks.push(this.#mark(region));
    }
    if (marks === undefined) return undefined;
    return Promise.all(marks).catch((error: unknown) => {
      this.leave(first, last);
      throw error;
    });
  }

  /** They have changed, or not. */
  leave(first: number, last: number): void {
    for (let region = first; region <= last; region++) {
      const use = this.#uses.get(region)!;
      use.writers--;
      use.syncs = this.#syncs;
    }
  }

  /** A sync of the disk is about to begin. */
  onSyncBegins(): void {
    this.#syncs++;
  }

  /** A sync has ended well: takes back the marks of regions that have been at rest for long; at the end of the disk of all. */
  async release(atEnd = false): Promise<void> {
    if (!atEnd && this.#syncs % IDLE_SYNCS !== 0) return;
    const writes: Promise<void>[] = [];
    for (const [region, { writers, syncs }] of this.#uses) {
      const isIdle = writers === 0 && (atEnd || this.#syncs - syncs >= IDLE_SYNCS);
      if (!isIdle || this.#unsettled.has(region)) continue;
      this.#uses.delete(region);
      if ((this.#states[region] & MARKED) !== 0) writes.push(this.#store(region, USED));
    }
    await Promise.all(writes);
  }

  #mark(region: number): Promise<void> {
    let marking = this.#marking.get(region);
    if (marking === undefined) {
      const done = () => this.#marking.delete(region);
      marking = this.#storeMark(region);
      this.#marking.set(region, marking);
      marking.then(done, done);
    }
    return marking;
  }

  async #storeMark(region: number): Promise<void> {
    await this.#store(region, USED | MARKED, false);
    await this.#sync();
    this.#states[region] = USED | MARKED;
  }

  /** Writes of the map follow one another: two of one byte must not overtake each other. */
  #store(region: number, state: number, atOnce = true): Promise<void> {
    if (atOnce) this.#states[region] = state;
    return this.#writing.run(() => writeFully(this.#file, Uint8Array.of(state), MAP_OFFSET + region));
  }
}
