/**
 * The memory of a program by a descriptor of its /proc/self/mem, which it has opened itself: for processes that may not
 * use process_vm_readv(2), by a filter of system calls or by Yama. Writes also change memory that is read-only there.
 */

import { closeSync, readSync, writeSync } from 'node:fs';
import type { AddressSpace } from './address-space.js';

export class DescriptorMemory implements AddressSpace {
  readonly #fd: number;

  /** Takes over the descriptor. */
  constructor(fd: number) {
    this.#fd = fd;
  }

  read(address: number, length: number, to: Uint8Array, toOffset: number): boolean {
    try {
      return readSync(this.#fd, to, toOffset, length, address) === length;
    } catch {
      return false;
    }
  }

  write(address: number, from: Uint8Array, fromOffset: number, length: number): boolean {
    try {
      return writeSync(this.#fd, from, fromOffset, length, address) === length;
    } catch {
      return false;
    }
  }

  close(): void {
    closeSync(this.#fd);
  }
}
