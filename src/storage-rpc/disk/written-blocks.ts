/** Blocks that were written since the last sync began: the file of checksums still has their older value. */

/** More than these are not followed until the next sync. */
const BLOCKS_MAX = 16_384;

export class WrittenBlocks {
  #blocks = new Set<number>();
  #isComplete = true;

  add(first: number, count: number): void {
    if (this.#isComplete && this.#blocks.size + count <= BLOCKS_MAX) {
      for (let block = first; block < first + count; block++) this.#blocks.add(block);
      return;
    }
    this.#isComplete = false;
    this.#blocks.clear();
  }

  /** True also where it is not known. */
  has(block: number): boolean {
    return !this.#isComplete || this.#blocks.has(block);
  }

  /** Runs of those that are known, in order; a new list begins. */
  take(): Array<{ readonly first: number; readonly count: number }> {
    const blocks = [...this.#blocks].sort((a, b) => a - b);
    this.#blocks.clear();
    this.#isComplete = true;
    const runs: Array<{ first: number; count: number }> = [];
    for (const block of blocks) {
      const last = runs.at(-1);
      if (last !== undefined && last.first + last.count === block) last.count++;
      else runs.push({ first: block, count: 1 });
    }
    return runs;
  }
}
