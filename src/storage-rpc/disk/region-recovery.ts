/**
 * Settles, in the background and while the disk is in use, the regions that a killed process or a failed write left open: their blocks are
 * read, and the values that turn out not to hold are replaced on file. A region that is done is done for good, whatever happens next.
 */

import { REGION_BLOCKS } from './checksum-format.js';
import type { RegionMap } from './region-map.js';

/** Blocks looked at in one go, while requests to them wait. */
const STEP_BLOCKS = 256;

/** What became of open blocks. */
export interface Settled {
  /** Blocks that hold what was written last. */
  newer: number;
  /** Blocks that hold what was there before. */
  older: number;
  /** Blocks that hold neither: they fail until they are written. */
  torn: number;
}

interface RecoveryOptions {
  readonly regions: RegionMap;
  readonly blocks: number;
  /** Settles some blocks, with no change to them meanwhile. */
  readonly settle: (first: number, count: number) => Promise<Settled>;
  /** Makes the data and its values durable. */
  readonly sync: () => Promise<void>;
  /** All regions are settled that can be read. */
  readonly onDone: (settled: Settled, regions: number) => void;
}

/** The recovery of one disk. */
export class RegionRecovery {
  readonly #options: RecoveryOptions;
  #running: Promise<void> | undefined;
  #stopped = false;

  constructor(options: RecoveryOptions) {
    this.#options = options;
  }

  /** Whether it is at work. */
  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** Begins if there is something to settle and it has not begun. */
  start(): void {
    if (this.#stopped || this.#running !== undefined || this.#options.regions.unsettled === 0) return;
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  /** Stops; what is not settled is left to the next opening. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    const { regions, onDone } = this.#options;
    const total: Settled = { newer: 0, older: 0, torn: 0 };
    const tried = new Set<number>();
    for (let next = regions.nextUnsettled(tried); next !== undefined; next = regions.nextUnsettled(tried)) {
      tried.add(next.region);
      const isDone = await this.#settleRegion(next.region, next.doubt, total).catch(() => false); // A bad sector, or a broken store.
      if (this.#stopped && !isDone) return;
    }
    onDone(total, tried.size);
  }

  async #settleRegion(region: number, doubt: number, total: Settled): Promise<boolean> {
    const { regions, blocks, settle, sync } = this.#options;
    const end = Math.min(blocks, (region + 1) * REGION_BLOCKS);
    for (let first = region * REGION_BLOCKS; first < end; first += STEP_BLOCKS) {
      if (this.#stopped) return false;
      const { newer, older, torn } = await settle(first, Math.min(STEP_BLOCKS, end - first));
      total.newer += newer;
      total.older += older;
      total.torn += torn;
    }
    await sync();
    await regions.settle(region, doubt);
    return true;
  }
}
