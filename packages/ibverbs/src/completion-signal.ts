/**
 * Wakes threads of a program that poll for completions and have found none for a while: they sleep on a word of the
 * doorbells' header (futex(2)), so that the NIC has a processor. They arm their queues, as for an event.
 */

import process from 'node:process';
import { RoceError } from 'rocev2/internal/core';
import { libC, nativeFunction } from 'rocev2/internal/dgram-ext';

/** Words of the header of doorbells; native/shim.h has the same numbers. */
const WORD_SIGNALS = 8;
const WORD_SLEEPERS = 9;
/** Word of the header of a completion queue: the program itself has asked for an event. */
const WORD_REQUESTED = 10;
const WORDS = 16;

const FUTEX_WAKE = 1;
const ALL_THREADS = 2 ** 31 - 1;
const SYS_FUTEX: Partial<Record<string, number>> = { x64: 202, arm64: 98 };

type Syscall = (number: number, address: number, operation: number, value: number, ...unused: number[]) => unknown;

let syscall: Syscall | undefined;

export class CompletionSignal {
  readonly #header: Int32Array;
  readonly #address: number;
  readonly #number: number;
  readonly #call: Syscall;

  /** `memory`: of the doorbells. Throws ERR_ROCE_UNSUPPORTED on other systems. */
  constructor(memory: ArrayBufferLike) {
    const lib = libC();
    const number = SYS_FUTEX[process.arch];
    if (typeof lib === 'string' || number === undefined) {
      throw new RoceError('ERR_ROCE_UNSUPPORTED', `threads cannot be woken on ${process.platform} ${process.arch}`);
    }
    syscall ??= nativeFunction(
      'libc.so.6',
      'long syscall(long, uintptr_t, long, long, uintptr_t, uintptr_t, long)',
    ) as Syscall;
    this.#call = syscall;
    this.#number = number;
    this.#header = new Int32Array(memory, 0, WORDS);
    this.#address = lib.addressOf(new Uint8Array(memory as ArrayBuffer)) + 4 * WORD_SIGNALS;
  }

  /** A thread that looks at its queues now does not sleep afterwards without looking again. */
  raise(): void {
    Atomics.add(this.#header, WORD_SIGNALS, 1);
    if (Atomics.load(this.#header, WORD_SLEEPERS) === 0) return;
    this.#call(this.#number, this.#address, FUTEX_WAKE, ALL_THREADS, 0, 0, 0);
  }
}

/** True, once, if the program has asked for an event of this completion queue. */
export function takeRequest(memory: ArrayBufferLike): boolean {
  return Atomics.exchange(new Int32Array(memory, 0, WORDS), WORD_REQUESTED, 0) !== 0;
}
