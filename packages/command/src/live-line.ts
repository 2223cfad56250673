/** A status line on stderr that overwrites itself; silent when stderr is not a terminal. */

import type { CliIo } from './output.js';

const CLEAR_LINE = '\r\u001b[K';

/** A line that shows progress. */
export class LiveLine {
  readonly #io: CliIo;
  #isShown = false;

  constructor(io: CliIo) {
    this.#io = io;
  }

  /** Replaces the line with `text`. */
  update(text: string): void {
    if (this.#io.stderr.isTTY !== true) return;
    this.#io.stderr.write(`${CLEAR_LINE}${text}`);
    this.#isShown = true;
  }

  /** Removes the line, so that the next output takes its place. */
  clear(): void {
    if (this.#isShown) this.#io.stderr.write(CLEAR_LINE);
    this.#isShown = false;
  }
}
