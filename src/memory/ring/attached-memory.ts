/**
 * Memory made reachable for a NIC, by number: a buffer has one number however often it is attached, and must be
 * detached as often.
 */

import { RoceError } from '../../core/errors.js';

interface Entry {
  readonly buffer: ArrayBufferLike;
  users: number;
}

export class AttachedMemory {
  readonly #byId = new Map<number, Entry>();
  readonly #ids = new Map<ArrayBufferLike, number>();
  #nextId = 1;

  attach(buffer: ArrayBufferLike): { id: number; isNew: boolean } {
    const known = this.#ids.get(buffer);
    if (known !== undefined) {
      this.#byId.get(known)!.users++;
      return { id: known, isNew: false };
    }
    const id = this.#nextId++;
    this.#ids.set(buffer, id);
    this.#byId.set(id, { buffer, users: 1 });
    return { id, isNew: true };
  }

  /** True if the buffer is no longer in use. Throws ERR_ROCE_NOT_FOUND. */
  detach(id: number): boolean {
    const entry = this.#byId.get(id);
    if (entry === undefined) throw new RoceError('ERR_ROCE_NOT_FOUND', 'this memory is not attached');
    entry.users--;
    if (entry.users > 0) return false;
    this.#byId.delete(id);
    this.#ids.delete(entry.buffer);
    return true;
  }

  /** The buffer of this number; undefined if it is not attached. */
  get(id: number): ArrayBufferLike | undefined {
    return this.#byId.get(id)?.buffer;
  }
}
