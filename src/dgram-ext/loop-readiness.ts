/**
 * Tells an event loop that a socket has something to read: libuv polls the descriptor (uv_poll_t), as it does for its own sockets, and reads
 * nothing. No thread waits, and the one that is woken is the one that reads.
 *
 * Invariants: `onReadable` runs as long as there is something to read, once a round of the loop; the descriptor is closed after this object.
 */

import type { LibC, LoopPoll } from './libc.js';

/** The watch of one event loop over one socket. It keeps the loop alive. */
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

  /** Ends the polling; `onReadable` is not called again. */
  close(): void {
    this.#stopped = false;
    this.#poll.close();
  }
}
