/** Reads a disk continuously at a limited rate to find damage early: flipped bits, and misdirected writes. */

import { checkKind, checkOptions, type OptionNames, shown } from '../../core/arguments.js';
import type { Clock } from '../../core/clock.js';
import { RoceError } from '../../core/errors.js';
import { NS_PER_S } from '../../core/units.js';
import { REGION_BYTES } from './checksum-format.js';

const STEP_BYTES = 256 << 10;
const PASS_NS_MIN = 60 * NS_PER_S;
const NAMED_MAX = 100;

/** The methods of a disk that a scrubber uses; `FileDevice` has them. */
export interface ScrubbedDisk {
  /** Bytes of the whole disk, a multiple of 4096. */
  readonly sizeBytes: number;
  /** Whether anything was ever written to the region of 64 MiB around the offset. */
  isUsed(offset: number): boolean;
  /** Checks whole blocks: the offsets of damaged ones. */
  verify(offset: number, length: number): Promise<number[]>;
}

/** What to scrub, and how fast. */
export interface ScrubberOptions {
  /** The disk; must not be closed before the scrubber is stopped. */
  readonly disk: ScrubbedDisk;
  /** For the rate. */
  readonly clock: Clock;
  /** Bytes to read per second. */
  readonly bytesPerSecond: number;
  /** Called with messages for the operator: damaged blocks, and ranges that cannot be read. */
  readonly onNotice: (notice: string) => void;
}

const OPTIONS: OptionNames<ScrubberOptions> = { disk: true, clock: true, bytesPerSecond: true, onNotice: true };

function checkScrubber(options: ScrubberOptions): void {
  checkOptions('Scrubber', options, OPTIONS);
  const { disk, clock, bytesPerSecond, onNotice } = options;
  checkKind('disk', disk, typeof disk?.verify === 'function', 'a FileDevice');
  checkKind('clock', clock, typeof clock?.nowNs === 'function', 'the clock of a device');
  checkKind('onNotice', onNotice, typeof onNotice === 'function', 'a function');
  if (typeof bytesPerSecond === 'number' && bytesPerSecond > 0) return;
  throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `bytesPerSecond is ${shown(bytesPerSecond)}`, 'it must be above 0');
}

/** The scrubber of one disk. */
export class Scrubber {
  /** Completed passes over the whole disk. */
  passes = 0;
  /** Bytes checked in all passes. */
  checkedBytes = 0;
  readonly #options: ScrubberOptions;
  readonly #damaged = new Set<number>();
  readonly #unreadable = new Set<number>();
  #isInRun = false;
  readonly #running: Promise<void>;
  #stopped = false;
  #wake: () => void = () => {};

  /**
   * Begins at once. Throws ERR_ROCE_OUT_OF_RANGE for an invalid rate, ERR_ROCE_INVALID_ARGUMENT for other invalid
   * options.
   */
  constructor(options: ScrubberOptions) {
    checkScrubber(options);
    this.#options = options;
    this.#running = this.#run();
  }

  /** Blocks that were damaged when they were last checked. */
  get damagedBlocks(): number {
    return this.#damaged.size;
  }

  /** Bytes that could not be read, and so not be checked, at the last attempt. */
  get unreadableBytes(): number {
    const { sizeBytes } = this.#options.disk;
    return [...this.#unreadable].reduce((sum, at) => sum + Math.min(STEP_BYTES, sizeBytes - at), 0);
  }

  /** Ends it; the disk can be closed when this resolves. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#wake();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { disk, clock, bytesPerSecond } = this.#options;
    while (!this.#stopped) {
      const startNs = clock.nowNs();
      let dueNs = startNs;
      for (let at = 0; at < disk.sizeBytes && !this.#stopped; ) {
        if (!disk.isUsed(at)) {
          at = (Math.floor(at / REGION_BYTES) + 1) * REGION_BYTES;
          continue;
        }
        const length = Math.min(STEP_BYTES, disk.sizeBytes - at);
        await this.#check(at, length);
        at += length;
        dueNs = Math.max(dueNs + (length / bytesPerSecond) * NS_PER_S, clock.nowNs());
        await this.#until(dueNs);
      }
      if (!this.#stopped) this.passes++;
      await this.#until(startNs + PASS_NS_MIN);
    }
  }

  /** Unreadable parts are skipped, reported, and retried in the next pass, so that the rest of the disk is checked. */
  async #check(at: number, length: number): Promise<void> {
    let found: number[];
    try {
      found = await this.#options.disk.verify(at, length);
    } catch (error) {
      this.#refused(at, error as Error);
      return;
    }
    this.#isInRun = false;
    this.#unreadable.delete(at);
    this.checkedBytes += length;
    this.#judged(at, length, found);
  }

  #refused(at: number, { message }: Error): void {
    if (this.#stopped) return;
    if (!(this.#isInRun || this.#unreadable.has(at)) && this.#unreadable.size < NAMED_MAX) {
      this.#options.onNotice(
        `the scrubber cannot read the disk from ${at} on, and tries again in each pass: ${message}`,
      );
    }
    this.#isInRun = true;
    this.#unreadable.add(at);
  }

  #judged(at: number, length: number, found: readonly number[]): void {
    for (const offset of this.#damaged) {
      if (offset >= at && offset < at + length && !found.includes(offset)) this.#damaged.delete(offset);
    }
    for (const offset of found) {
      if (!this.#damaged.has(offset) && this.#damaged.size < NAMED_MAX) {
        this.#options.onNotice(`the scrubber found damage: the checksum of the 4 KiB at ${offset} is wrong`);
      }
      this.#damaged.add(offset);
    }
  }

  #until(timeNs: number): Promise<void> {
    const { clock } = this.#options;
    if (this.#stopped || timeNs <= clock.nowNs()) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = clock.wakeAt(timeNs, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }
}
