/**
 * Memory that is no array of this process, such as that of another process. Addresses are below 2^53, and what `read`
 * and `write` could not reach is unknown: the region that it belongs to is invalid from then on.
 */
export interface ForeignMemory {
  /** Copies `length` bytes at `address` to `to[toOffset]`. False: they cannot all be read. */
  read(address: number, length: number, to: Uint8Array, toOffset: number): boolean;
  /** Copies `length` bytes of `from[fromOffset]` to `address`. False: they cannot all be written. */
  write(address: number, from: Uint8Array, fromOffset: number, length: number): boolean;
}
