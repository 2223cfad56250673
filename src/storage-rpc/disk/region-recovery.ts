/**
 * Settles regions left open by a killed process or failed write, in the background: blocks are read, and check values
 * that do not hold are replaced on file.
 */

import { REGION_BLOCKS } from './checksum-format.js';
import type { RegionMap } from './region-map.js';

const STEP_BLOCKS = 256;

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
  readonly settle: (first: number, count: number) => Promise<Settled>;
  readonly sync: () => Promise<void>;
  readonly onDone: (settled: Settled, regions: number) => void;
}

export class RegionRecovery {
  readonly #options: RecoveryOptions;
  #running: Promise<void> | undefined;
  #stopped = false;

  constructor(options: RecoveryOptions) {
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  start(): void {
    if (this.#stopped || this.#running !== undefined || this.#options.regions.unsettled === 0) return;
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
    });
  }

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
      const isDone = await this.#settleRegion(next.region, next.doubt, total).catch(() => false);
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
