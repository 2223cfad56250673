/** The blocks of a pool as the peer of the owner knows them from the descriptions: the address and key of each id. */

import type { ControlMessage } from './messages.js';

interface RemoteSegment {
  readonly firstId: number;
  readonly count: number;
  readonly rkey: number;
  readonly address: bigint;
}

/** Addresses and keys of the peer's blocks, by id from 1. */
export class RemoteBlocks {
  /** m; 0 before the first description. */
  blockBytes = 0;
  /** Of the newest description; 0 before the first. */
  version = 0;
  #count = 0;
  readonly #segments: RemoteSegment[] = [];

  /** M: blocks described so far. */
  get count(): number {
    return this.#count;
  }

  /** False, and nothing changes, when the description does not continue the earlier ones, or the pool would exceed `blocksMax`. */
  add({ version, id, count, bytes, rkey, address }: ControlMessage, blocksMax: number): boolean {
    const continues = version === this.version + 1 && id === this.#count + 1 && count >= 1;
    if (!continues || bytes < 1 || (this.blockBytes !== 0 && bytes !== this.blockBytes)) return false;
    if (count > blocksMax - this.#count) return false;
    this.blockBytes = bytes;
    this.version = version;
    this.#count += count;
    this.#segments.push({ firstId: id, count, rkey, address });
    return true;
  }

  /** Where a block of the pool begins. */
  locate(id: number): { readonly remoteAddr: bigint; readonly rkey: number } {
    const segment = this.#segments.find(({ firstId, count }) => id >= firstId && id < firstId + count)!;
    return { remoteAddr: segment.address + BigInt((id - segment.firstId) * this.blockBytes), rkey: segment.rkey };
  }
}
