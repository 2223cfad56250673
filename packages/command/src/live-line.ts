/** A status line on stderr that overwrites itself; silent when stderr is not a terminal. */

import type { CliIo } from './output.js';

const CLEAR_LINE = '\r\u001b[K';

export class LiveLine {
  readonly #io: CliIo;
  #isShown = false;

  constructor(io: CliIo) {
    this.#io = io;
  }

  update(text: string): void {
    if (this.#io.stderr.isTTY !== true) return;
    this.#io.stderr.write(`${CLEAR_LINE}${text}`);
    this.#isShown = true;
  }

  clear(): void {
    if (this.#isShown) this.#io.stderr.write(CLEAR_LINE);
    this.#isShown = false;
  }
}
