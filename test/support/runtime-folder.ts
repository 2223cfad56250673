/** XDG_RUNTIME_DIR of this process, and of the programs that it starts: a folder of a test's own, so that nothing else is found in it. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

const VARIABLE = 'XDG_RUNTIME_DIR';

/** Made by {@link RuntimeFolder.take}; the variable is as before once it is disposed of. */
export class RuntimeFolder implements AsyncDisposable {
  readonly path: string;
  readonly #before = process.env[VARIABLE];

  private constructor(path: string) {
    this.path = path;
    process.env[VARIABLE] = path;
  }

  static async take(name: string): Promise<RuntimeFolder> {
    return new RuntimeFolder(await mkdtemp(join(tmpdir(), `rocev2-${name}-`)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#before === undefined) delete process.env[VARIABLE];
    else process.env[VARIABLE] = this.#before;
    await rm(this.path, { recursive: true });
  }
}
