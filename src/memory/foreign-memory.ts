/**
 * Memory that is no array of this process, such as that of another process. Addresses are below 2^53, and what `read`
 * and `write` could not reach is unknown: the region that it belongs to is invalid from then on. `follows`: bytes of
 * the same message after these, whose accesses come next.
 */
export interface ForeignMemory {
  /**
   * Copies `length` bytes at `address` to `to[toOffset]`. False: they cannot all be read. Bytes that follow may be read
   * with them, but not kept after the current callback of the event loop.
   */
  read(address: number, length: number, to: Uint8Array, toOffset: number, follows: number): boolean;
  /**
   * Copies `length` bytes of `from[fromOffset]` to `address`. False: they cannot all be written. Until the last bytes
   * of a message or the end of the current callback they may be kept: if they cannot be written then, `region` becomes
   * invalid.
   */
  write(
    address: number,
    from: Uint8Array,
    fromOffset: number,
    length: number,
    follows: number,
    region: { valid: boolean },
  ): boolean;
}
