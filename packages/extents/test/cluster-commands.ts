/** The commands that use a cluster of processes, as an operator runs them. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Program } from '../../../test/e2e/executable.js';

const APPENDED_BYTES = 2.5 * (1 << 20);

export class ClusterCommands {
  readonly #start: (...args: string[]) => Program;
  readonly #folder: string;
  readonly #manager: () => string;

  /** `manager`: where the managers are, with commas. Files are written in `folder`. */
  constructor(start: (...args: string[]) => Program, folder: string, manager: () => string) {
    this.#start = start;
    this.#folder = folder;
    this.#manager = manager;
  }

  async run(command: string, ...args: string[]) {
    const program = this.#start('extents', command, ...args, '--manager', this.#manager());
    const exit = await program.ended();
    return { exit, stdout: program.stdout, stderr: program.stderr };
  }

  async status() {
    return JSON.parse((await this.run('status', '--json')).stdout);
  }

  /** Appends more than two extents of 1 MiB; returns what. */
  async append(fill: string): Promise<string> {
    const text = fill.repeat(APPENDED_BYTES);
    const file = join(this.#folder, 'data');
    writeFileSync(file, text);
    expect(await this.run('append', 'log', file)).toMatchObject({ exit: 0 });
    return text;
  }

  async expectContent(text: string): Promise<void> {
    const { exit, stdout, stderr } = await this.run('read', 'log');
    expect({ exit, stderr, length: stdout.length }).toMatchObject({ exit: 0, length: text.length });
    expect(stdout === text).toBe(true);
  }
}
