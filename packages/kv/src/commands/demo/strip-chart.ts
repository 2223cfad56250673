/** A chart in the terminal: a line of blocks for each reader, as high as its slowest GET of late, on a logarithmic scale. */

import type { CliIo } from '@rocev2/command';

const BLOCKS = '▁▂▃▄▅▆▇█';
/** Times of the lowest and of the highest block. */
const LOW_NS = 1e5;
const HIGH_NS = 2e9;

/** The block of a time; a space for none. */
export function blockOf(ns: number): string {
  if (ns === 0) return ' ';
  const share = Math.log(ns / LOW_NS) / Math.log(HIGH_NS / LOW_NS);
  return BLOCKS[Math.min(BLOCKS.length - 1, Math.max(0, Math.floor(share * BLOCKS.length)))];
}

/** Lines on stderr that overwrite themselves; silent when it is not a terminal. */
export class LiveLines {
  readonly #io: CliIo;
  #shown = 0;

  constructor(io: CliIo) {
    this.#io = io;
  }

  /** Shows these lines in place of those before. */
  update(lines: readonly string[]): void {
    if (this.#io.stderr.isTTY !== true) return;
    this.clear();
    this.#io.stderr.write(lines.map((line) => `${line}\n`).join(''));
    this.#shown = lines.length;
  }

  /** Removes them. */
  clear(): void {
    if (this.#shown > 0) this.#io.stderr.write(`\u001b[${this.#shown}A\u001b[J`);
    this.#shown = 0;
  }
}
