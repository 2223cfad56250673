/** The owner does not see READs. A reader therefore tells it some of the keys that it has used, so that eviction spares them. */

import { WRITES_MAX } from './protocol.js';

/** One GET in so many is told. */
const EVERY = 32;

/** Collects keys, and tells them when there are enough. */
export class UsedKeys {
  readonly #tell: (keys: readonly Buffer[]) => Promise<unknown>;
  readonly #keys: Buffer[] = [];
  #gets = 0;
  #isTelling = false;

  /** `tell` may fail: nothing depends on it. */
  constructor(tell: (keys: readonly Buffer[]) => Promise<unknown>) {
    this.#tell = tell;
  }

  /** A GET has found this key. While the owner has not answered, keys are left out. */
  note(key: Buffer): void {
    if (++this.#gets % EVERY !== 0 || this.#keys.length >= WRITES_MAX) return;
    this.#keys.push(key);
    if (this.#keys.length < WRITES_MAX || this.#isTelling) return;
    this.#isTelling = true;
    const done = () => {
      this.#isTelling = false;
    };
    this.#tell(this.#keys.splice(0)).then(done, done);
  }
}
