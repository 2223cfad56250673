/**
 * A part that is loaded only on demand. `import` names the module by a variable, which bundlers do not follow, so a
 * bundle has the part only if its program imports the entry that provides it.
 */

import { RoceError } from './errors.js';

export class OptionalPart<T> {
  readonly #what: string;
  readonly #entry: string;
  readonly #importModule: () => Promise<unknown>;
  #provided: T | undefined;

  constructor(what: string, entry: string, importModule: () => Promise<unknown>) {
    this.#what = what;
    this.#entry = entry;
    this.#importModule = importModule;
  }

  provide(part: T): void {
    this.#provided = part;
  }

  async load(): Promise<T> {
    this.#provided ??= await this.#import();
    return this.#provided;
  }

  /** Undefined in a bundle that has left it out. */
  loadIfPresent(): Promise<T | undefined> {
    return this.load().catch(() => undefined);
  }

  async #import(): Promise<T> {
    try {
      return (await this.#importModule()) as T;
    } catch (cause) {
      throw new RoceError(
        'ERR_ROCE_NOT_FOUND',
        `${this.#what} cannot be loaded: this program seems to be a bundle that has left it out`,
        `add import '${this.#entry}' to the program: docs/how-to/deploy.md`,
        { cause },
      );
    }
  }
}
