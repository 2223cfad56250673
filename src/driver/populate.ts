/**
 * Populates pages of the library's own allocations when they are made, because a first touch costs more than the packet
 * that causes it; real adapters pin pages at registration. Huge pages are not requested: on a virtual machine they cost
 * between a quarter and six times as much, depending on the host.
 */

import { type LibC, libC } from '../dgram-ext/libc.js';

/** Linux 5.14. */
const MADV_POPULATE_WRITE = 23;
/** No page is smaller; where they are larger, the kernel refuses the address, and pages are touched. */
const PAGE_BYTES = 4096;
/**
 * Larger memory is not populated: a program that allocates that much seldom uses all of it soon, and the pause would be
 * noticeable.
 */
const POPULATED_BYTES_MAX = 1 << 30;

/** Gives fresh memory its pages now; it must be all zero. Does nothing for more than 1 GiB. */
export function populate(bytes: Uint8Array, lib: Pick<LibC, 'addressOf' | 'madvise'> | string = libC()): void {
  if (bytes.length > POPULATED_BYTES_MAX || bytes.length < PAGE_BYTES) return;
  if (typeof lib !== 'string' && populatedBySystem(bytes, lib)) return;
  for (let i = 0; i < bytes.length; i += PAGE_BYTES) bytes[i] = 0;
}

/** False where the kernel does not do it; what of the memory shares a page with other memory is left. */
function populatedBySystem(bytes: Uint8Array, lib: Pick<LibC, 'addressOf' | 'madvise'>): boolean {
  const begin = lib.addressOf(bytes);
  const start = Math.ceil(begin / PAGE_BYTES) * PAGE_BYTES;
  const length = Math.floor((begin + bytes.length) / PAGE_BYTES) * PAGE_BYTES - start;
  if (length <= 0) return true;
  return lib.madvise(start, length, MADV_POPULATE_WRITE) === 0;
}
