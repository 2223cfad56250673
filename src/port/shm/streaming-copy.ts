/**
 * Copies that bypass the cache (non-temporal stores), by libpmem. A ring's slots were last read by another processor,
 * whose cache would have to give up each line before an ordinary store: several times the cost of the copy.
 */

import { equalBytes } from '../../core/bytes.js';
import { RoceError } from '../../core/errors.js';
import { koffiPackage, type LibC } from '../../dgram-ext/libc.js';
import { rememberedAddresses } from '../../dgram-ext/remembered-addresses.js';

const LIBRARY = 'libpmem.so.1';
/** `javascript`: data are copied as usual, even if the library is available. */
export const SHM_COPY_VARIABLE = 'ROCEV2_SHM_COPY';
const FLAGS = 1 | 2;
/** The self-test: a packet's data, from and to offsets that are aligned only to words. */
const TRIED_BYTES = 4096;
const TRIED_OFFSET = 12;

export interface StreamingCopy {
  /** Throws RangeError where these bytes are not all in the arrays. */
  copy(to: Uint8Array, at: number, from: Uint8Array, offset: number, length: number): void;
  /** All data copied so far is in memory before later stores of this thread. */
  drain(): void;
}

/** Undefined where there is no such library, it copies wrongly, or {@link SHM_COPY_VARIABLE} forbids it. */
export function loadStreamingCopy(lib: LibC): StreamingCopy | undefined {
  const wanted = process.env[SHM_COPY_VARIABLE];
  if (wanted === 'javascript') return undefined;
  if (wanted !== undefined)
    throw new RoceError(
      'ERR_ROCE_UNKNOWN_NAME',
      `${SHM_COPY_VARIABLE} is '${wanted}'`,
      "it is 'javascript', or not set",
    );
  try {
    const loaded = koffiPackage().load(LIBRARY);
    const copyMemory: (to: number, from: number, bytes: number, flags: number) => number = loaded.func(
      'uintptr_t pmem_memcpy(uintptr_t, uintptr_t, size_t, int)',
    );
    const drain: () => void = loaded.func('void pmem_drain()');
    const addressOfTarget = rememberedAddresses(lib);
    const addressOfSource = rememberedAddresses(lib);
    const streaming: StreamingCopy = {
      copy: (to, at, from, offset, length) => {
        if (at < 0 || at + length > to.length || offset < 0 || offset + length > from.length) {
          throw new RangeError('these bytes are not all in the arrays');
        }
        copyMemory(addressOfTarget(to) + at, addressOfSource(from) + offset, length, FLAGS);
      },
      drain,
    };
    return copiesRight(streaming) ? streaming : undefined;
  } catch {
    return undefined;
  }
}

export function copiesRight({ copy, drain }: StreamingCopy): boolean {
  const from = Uint8Array.from({ length: TRIED_BYTES + 2 * TRIED_OFFSET }, (_, i) => (i * 251) >>> 3);
  const to = new Uint8Array(TRIED_BYTES + 2 * TRIED_OFFSET).fill(0xa5);
  const right = to.slice();
  right.set(from.subarray(TRIED_OFFSET, TRIED_OFFSET + TRIED_BYTES), TRIED_OFFSET);
  copy(to, TRIED_OFFSET, from, TRIED_OFFSET, TRIED_BYTES);
  drain();
  return equalBytes(to, right);
}
