/**
 * The write-intent bitmap: a byte per 64 MiB region says whether it was ever written and whether it may be changing. A
 * region is marked durably before its first change and unmarked when all its changes are durable, so after a crash only
 * marked regions may have blocks in doubt.
 */

import type { FileHandle } from 'node:fs/promises';
import { PromiseMutex } from '../../core/promise-mutex.js';
import { MAP_OFFSET, REGION_BLOCKS } from './checksum-format.js';
import { readFully, writeFully } from './file-io.js';

const USED = 1;
/** Blocks may be changing. */
const MARKED = 2;
/** A mark is removed after this many syncs without a change, so that regions in use keep it. */
const IDLE_SYNCS = 64;

interface Use {
  writers: number;
  /** Syncs that had begun when a writer last came or went. */
  syncs: number;
}

export class RegionMap {
  readonly #file: FileHandle;
  readonly #states: Uint8Array;
  readonly #sync: () => Promise<void>;
  readonly #uses = new Map<number, Use>();
  readonly #marking = new Map<number, Promise<void>>();
  /** Regions whose blocks may be old or new, each with a number that changes when that is found again. */
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

  static async load(file: FileHandle, blocks: number): Promise<(sync: () => Promise<void>) => RegionMap> {
    const states = new Uint8Array(Math.ceil(blocks / REGION_BLOCKS));
    await readFully(file, states, MAP_OFFSET);
    return (sync) => new RegionMap(file, states, sync);
  }

  static async write(file: FileHandle, blocks: number, used: ReadonlySet<number>): Promise<void> {
    const states = new Uint8Array(Math.ceil(blocks / REGION_BLOCKS));
    for (const region of used) states[region] = USED;
    await writeFully(file, states, MAP_OFFSET);
  }

  isUsed(region: number): boolean {
    return this.#states[region] !== 0;
  }

  isUnsettled(region: number): boolean {
    return this.#unsettled.has(region);
  }

  get unsettled(): number {
    return this.#unsettled.size;
  }

  nextUnsettled(skip: ReadonlySet<number>): { readonly region: number; readonly doubt: number } | undefined {
    for (const [region, doubt] of this.#unsettled) if (!skip.has(region)) return { region, doubt };
    return undefined;
  }

  doubt(region: number): void {
    this.#unsettled.set(region, ++this.#doubts);
  }

  /** All blocks are known, on file and durable; has no effect if there is a newer doubt. */
  async settle(region: number, doubt: number): Promise<void> {
    if (this.#unsettled.get(region) !== doubt) return;
    this.#unsettled.delete(region);
    if (!this.#uses.has(region)) await this.#store(region, USED);
  }

  /**
   * Blocks of the regions are about to change; a promise if that must be recorded first. `leave` follows when it is
   * undefined or resolves.
   */
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

  leave(first: number, last: number): void {
    for (let region = first; region <= last; region++) {
      const use = this.#uses.get(region)!;
      use.writers--;
      use.syncs = this.#syncs;
    }
  }

  onSyncBegins(): void {
    this.#syncs++;
  }

  /**
   * After a successful sync: clears the marks of regions that have been idle for long; when the disk is closed, of all.
   */
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
