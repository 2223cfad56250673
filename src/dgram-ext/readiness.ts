/**
 * Blocks a thread until a socket has something to read or another thread signals: ppoll(2) on the socket and an
 * eventfd(2).
 *
 * Invariant: the descriptor list lives as long as this object.
 */

import { NS_PER_S } from '../core/units.js';
import { type LibC, libC } from './libc.js';

const POLLIN = 1;
const POLLFD_BYTES = 8;
const TIMESPEC_OFFSET = 2 * POLLFD_BYTES;
const TOKEN_OFFSET = TIMESPEC_OFFSET + 16;
const EFD_CLOEXEC_NONBLOCK = 0o2000000 | 0o4000;

export class Readiness {
  readonly #lib: LibC;
  readonly #memory = new ArrayBuffer(64);
  readonly #view = new DataView(this.#memory);
  readonly #address: number;
  readonly eventFd: number;

  constructor(lib: LibC, fd: number) {
    this.#lib = lib;
    this.#address = lib.addressOf(new Uint8Array(this.#memory));
    this.eventFd = lib.eventfd(0, EFD_CLOEXEC_NONBLOCK);
    [fd, this.eventFd].forEach((watched, i) => {
      this.#view.setInt32(i * POLLFD_BYTES, watched, true);
      this.#view.setInt16(i * POLLFD_BYTES + 4, POLLIN, true);
    });
  }

  block(timeoutNs: number): boolean {
    const seconds = Math.floor(timeoutNs / NS_PER_S);
    this.#view.setUint32(TIMESPEC_OFFSET, seconds, true);
    this.#view.setUint32(TIMESPEC_OFFSET + 8, timeoutNs - seconds * NS_PER_S, true);
    const ready = this.#lib.ppoll(this.#address, 2, this.#address + TIMESPEC_OFFSET, 0);
    this.#clear();
    return ready !== 0;
  }

  close(): void {
    this.#lib.close(this.eventFd);
  }

  #clear(): void {
    if (this.#view.getInt16(POLLFD_BYTES + 6, true) !== 0) {
      this.#lib.read(this.eventFd, this.#address + TOKEN_OFFSET, 8);
    }
  }
}

const ONE = new BigUint64Array(new ArrayBuffer(64)).fill(1n);

export function eventFdWaker(fd: number): () => void {
  const lib = libC() as LibC;
  const address = lib.addressOf(new Uint8Array(ONE.buffer));
  return () => {
    lib.write(fd, address, 8);
  };
}
