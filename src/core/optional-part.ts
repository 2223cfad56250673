/**
 * A part of the library that only programs load that ask for it. Its `import` names the module by a variable: bundlers do not follow that, so a bundle has the
 * part when its program imports the entry of the package that provides it. A program that runs from `node_modules` does not need that.
 */

import { RoceError } from './errors.js';

/** Loads a part when it is asked for first, unless it was provided. */
export class OptionalPart<T> {
  readonly #what: string;
  readonly #entry: string;
  readonly #importModule: () => Promise<unknown>;
  #provided: T | undefined;

  /** `what`, as in "the telemetry of the device"; `entry`: the entry of the package that provides it; `importModule` imports what is a `T`. */
  constructor(what: string, entry: string, importModule: () => Promise<unknown>) {
    this.#what = what;
    this.#entry = entry;
    this.#importModule = importModule;
  }

  /** The part is in the program, as in a bundle. */
  provide(part: T): void {
    this.#provided = part;
  }

  /** Rejects with ERR_ROCE_NOT_FOUND in a bundle that has left it out. */
  async load(): Promise<T> {
    this.#provided ??= await this.#import();
    return this.#provided;
  }

  async #import(): Promise<T> {
    try {
      return (await this.#importModule()) as T;
    } catch (cause) {
      throw new RoceError(
        'ERR_ROCE_NOT_FOUND',
        `${this.#what} cannot be loaded: this program seems to be a bundle that has left it out`,
        `add import '${this.#entry}' to the program: docs/packaging.md`,
        { cause },
      );
    }
  }
}
