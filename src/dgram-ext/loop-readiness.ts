/**
 * Signals readability of a socket through libuv (uv_poll_t), which reads nothing. Invariants: `onReadable` runs as long
 * as there is something to read, once per loop iteration; the descriptor is closed after this object.
 */

import type { LibC, LoopPoll } from './libc.js';

export class LoopReadiness {
  readonly #poll: LoopPoll;
  readonly #onPoll: (status: number) => void;
  /** libuv stops polling after a socket error. The next read clears the error. */
  #stopped = false;

  /** `onReadable` runs outside of Node's callbacks: it must not throw, and must only schedule work. */
  constructor(lib: LibC, fd: number, onReadable: () => void) {
    this.#onPoll = (status) => {
      if (status < 0) this.#stopped = true;
      onReadable();
    };
    this.#poll = lib.pollOnLoop(fd, this.#onPoll);
  }

  /** Call it after everything has been read. */
  rest(): void {
    if (!this.#stopped) return;
    this.#stopped = false;
    this.#poll.start(this.#onPoll);
  }

  close(): void {
    this.#stopped = false;
    this.#poll.close();
  }
}
