/** The owner does not see READs, so a reader reports some of the keys it has used, for eviction. */

import { WRITES_MAX } from './protocol.js';

const EVERY = 32;

export class UsedKeys {
  readonly #tell: (keys: readonly Buffer[]) => Promise<unknown>;
  readonly #keys: Buffer[] = [];
  #gets = 0;
  #isTelling = false;

  constructor(tell: (keys: readonly Buffer[]) => Promise<unknown>) {
    this.#tell = tell;
  }

  /** While the owner has not answered, keys are left out. */
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
