import { RoceError } from '../core/errors.js';

export class HandleTable<T> {
  readonly #kind: string;
  readonly #objects = new Map<number, T>();

  constructor(kind: string) {
    this.#kind = kind;
  }

  add(handle: number, object: T): void {
    this.#objects.set(handle, object);
  }

  get(handle: number): T {
    const object = this.#objects.get(handle);
    if (object === undefined) throw new RoceError('ERR_ROCE_NOT_FOUND', `no such ${this.#kind}`);
    return object;
  }

  find(handle: number): T | undefined {
    return this.#objects.get(handle);
  }

  remove(handle: number): void {
    this.#objects.delete(handle);
  }
}
