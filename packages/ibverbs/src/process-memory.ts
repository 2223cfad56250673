/**
 * The memory of another process of this user, by process_vm_readv(2) and process_vm_writev(2). The kernel copies, so
 * the program needs no thread that takes part, and memory that it frees is an error of the access.
 */

import { RoceError } from 'rocev2/internal/core';
import { type LibC, libC, nativeFunction } from 'rocev2/internal/dgram-ext';
import type { AddressSpace } from './address-space.js';

/** The process, then address and number of the local and of the remote vectors, then flags. */
type Transfer = (pid: number, ...vectorsAndFlags: [number, number, number, number, number]) => number;

const IOVEC_BYTES = 16;
const WORD = 2 ** 32;

interface Calls {
  readonly lib: LibC;
  readonly read: Transfer;
  readonly write: Transfer;
}

let calls: Calls | undefined;

/** Throws ERR_ROCE_UNSUPPORTED where there are no native calls. */
function nativeCalls(): Calls {
  if (calls !== undefined) return calls;
  const lib = libC();
  if (typeof lib === 'string') {
    throw new RoceError('ERR_ROCE_UNSUPPORTED', `the memory of programs cannot be accessed: ${lib}`, 'install koffi');
  }
  const signature = '(int, uintptr_t, ulong, uintptr_t, ulong, ulong)';
  const transfer = (name: string) => nativeFunction('libc.so.6', `long ${name}${signature}`) as unknown as Transfer;
  calls = { lib, read: transfer('process_vm_readv'), write: transfer('process_vm_writev') };
  return calls;
}

export class ProcessMemory implements AddressSpace {
  readonly #pid: number;
  readonly #calls = nativeCalls();
  /** A local and a remote vector: address and length, of two words each. */
  readonly #vectors = new Uint32Array(new ArrayBuffer(2 * IOVEC_BYTES));
  readonly #local: number;
  /** Buffers do not move. */
  readonly #addresses = new WeakMap<ArrayBufferLike, number>();

  constructor(pid: number) {
    this.#pid = pid;
    this.#local = this.#calls.lib.addressOf(new Uint8Array(this.#vectors.buffer));
  }

  read(address: number, length: number, to: Uint8Array, toOffset: number): boolean {
    return this.#transfer(this.#calls.read, address, length, to, toOffset);
  }

  write(address: number, from: Uint8Array, fromOffset: number, length: number): boolean {
    return this.#transfer(this.#calls.write, address, length, from, fromOffset);
  }

  close(): void {}

  #transfer(call: Transfer, address: number, length: number, bytes: Uint8Array, offset: number): boolean {
    if (length === 0) return true;
    const vectors = this.#vectors;
    const local = this.#addressOf(bytes) + offset;
    vectors[0] = local;
    vectors[1] = local / WORD;
    vectors[2] = length;
    vectors[4] = address;
    vectors[5] = address / WORD;
    vectors[6] = length;
    return call(this.#pid, this.#local, 1, this.#local + IOVEC_BYTES, 1, 0) === length;
  }

  #addressOf({ buffer, byteOffset }: Uint8Array): number {
    let address = this.#addresses.get(buffer);
    if (address === undefined) {
      address = this.#calls.lib.addressOf(new Uint8Array(buffer));
      this.#addresses.set(buffer, address);
    }
    return address + byteOffset;
  }
}
