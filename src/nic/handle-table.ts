/** Objects of the NIC by the handles that commands name them with. */

import { RoceError } from '../core/errors.js';

/** Objects of one kind. */
export class HandleTable<T> {
  readonly #kind: string;
  readonly #objects = new Map<number, T>();

  /** `kind` names what is looked for in errors. */
  constructor(kind: string) {
    this.#kind = kind;
  }

  /** From now on `handle` names `object`. */
  add(handle: number, object: T): void {
    this.#objects.set(handle, object);
  }

  /** Throws ERR_ROCE_NOT_FOUND for a handle that names nothing. */
  get(handle: number): T {
    const object = this.#objects.get(handle);
    if (object === undefined) throw new RoceError('ERR_ROCE_NOT_FOUND', `no such ${this.#kind}`);
    return object;
  }

  /** The same, or undefined. */
  find(handle: number): T | undefined {
    return this.#objects.get(handle);
  }

  /** The handle names nothing any more. */
  remove(handle: number): void {
    this.#objects.delete(handle);
  }
}
