import type { ControlMessage } from './window-messages.js';

interface RemoteSegment {
  readonly firstId: number;
  readonly count: number;
  readonly rkey: number;
  readonly address: bigint;
}

export class RemoteBlocks {
  blockBytes = 0;
  version = 0;
  #count = 0;
  readonly #segments: RemoteSegment[] = [];

  get count(): number {
    return this.#count;
  }

  /**
   * False, and nothing changes, when the description does not continue the earlier ones, or the pool would exceed
   * `blocksMax`.
   */
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

  locate(id: number): { readonly remoteAddr: bigint; readonly rkey: number } {
    const segment = this.#segments.find(({ firstId, count }) => id >= firstId && id < firstId + count)!;
    return { remoteAddr: segment.address + BigInt((id - segment.firstId) * this.blockBytes), rkey: segment.rkey };
  }
}
