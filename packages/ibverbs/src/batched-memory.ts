/**
 * Accesses of the packets of one message, by few system calls: what follows in the message is read with its first
 * packet, and packets that continue each other are written together. Nothing is kept longer than the current callback
 * of the event loop, in which the NIC either receives or sends, so no completion comes between.
 */

import type { ForeignMemory } from 'rocev2/internal/memory';
import type { AddressSpace } from './address-space.js';

const BUFFER_BYTES = 65_536;
/** Read ahead, if as much is not used: a congestion window may be small. */
const REACH_MIN_BYTES = 4096;

export class BatchedMemory implements ForeignMemory {
  readonly #space: AddressSpace;
  #isScheduled = false;
  /** Read and not used yet: `#aheadLeft` bytes from `#aheadAddress` on, which end at `#aheadEnd` of the buffer. */
  #ahead: Uint8Array | undefined;
  #aheadAddress = 0;
  #aheadLeft = 0;
  #aheadEnd = 0;
  #reach = 4 * REACH_MIN_BYTES;
  /** To be written. */
  #late: Uint8Array | undefined;
  #lateAddress = 0;
  #lateBytes = 0;
  #lateRegion = { valid: true };

  constructor(space: AddressSpace) {
    this.#space = space;
  }

  read(address: number, length: number, to: Uint8Array, toOffset: number, follows: number): boolean {
    if (this.#lateBytes > 0) this.#flush();
    if (this.#aheadLeft < length || this.#aheadAddress !== address) {
      this.#aheadLeft = 0;
      const bytes = length + Math.min(follows, this.#reach);
      if (follows === 0 || bytes > BUFFER_BYTES) return this.#space.read(address, length, to, toOffset);
      this.#ahead ??= new Uint8Array(BUFFER_BYTES);
      // Later packets find out what cannot be read.
      if (!this.#space.read(address, bytes, this.#ahead, 0)) return this.#space.read(address, length, to, toOffset);
      this.#aheadAddress = address;
      this.#aheadLeft = this.#aheadEnd = bytes;
      this.#schedule();
    }
    const start = this.#aheadEnd - this.#aheadLeft;
    to.set(this.#ahead!.subarray(start, start + length), toOffset);
    this.#aheadAddress += length;
    this.#aheadLeft -= length;
    if (this.#aheadLeft === 0 && follows > 0) this.#reach = Math.min(2 * this.#reach, BUFFER_BYTES / 2);
    return true;
  }

  write(
    address: number,
    from: Uint8Array,
    fromOffset: number,
    length: number,
    follows: number,
    region: { valid: boolean },
  ): boolean {
    this.#aheadLeft = 0;
    const continues = this.#lateBytes > 0 && this.#lateAddress + this.#lateBytes === address;
    if (!continues || this.#lateRegion !== region || this.#lateBytes + length > BUFFER_BYTES) this.#flush();
    if (this.#lateBytes === 0 && (follows === 0 || length > BUFFER_BYTES)) {
      return region.valid && this.#space.write(address, from, fromOffset, length);
    }
    this.#late ??= new Uint8Array(BUFFER_BYTES);
    if (this.#lateBytes === 0) {
      this.#lateAddress = address;
      this.#lateRegion = region;
      this.#schedule();
    }
    this.#late.set(from.subarray(fromOffset, fromOffset + length), this.#lateBytes);
    this.#lateBytes += length;
    if (follows === 0) this.#flush();
    return region.valid;
  }

  #flush(): void {
    const length = this.#lateBytes;
    this.#lateBytes = 0;
    if (length > 0 && !this.#space.write(this.#lateAddress, this.#late!, 0, length)) this.#lateRegion.valid = false;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(this.#end);
  }

  readonly #end = (): void => {
    this.#isScheduled = false;
    this.#flush();
    if (this.#aheadLeft > 0) this.#reach = Math.max(REACH_MIN_BYTES, this.#reach / 2);
    this.#aheadLeft = 0;
  };
}
