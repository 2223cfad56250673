/** The modules of docs/extending.md, taken from the page and put where they can be loaded. */

import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/** File name to text: each block of code whose first line is a comment with a file name. */
export function filesOfPage(): ReadonlyMap<string, string> {
  const text = readFileSync('docs/extending.md', 'utf8');
  const blocks = text.matchAll(/^```\w+\n\/\/ (\S+)\n([\s\S]*?)^```$/gm);
  return new Map([...blocks].map(([, name, code]) => [name, code]));
}

/** A folder with the files of the page and this package as `node_modules/rocev2`, as in a project of somebody else. */
export class PageFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'rocev2-extending-'));

  constructor() {
    mkdirSync(join(this.path, 'node_modules'));
    symlinkSync(resolve('.'), join(this.path, 'node_modules', 'rocev2'), 'dir');
    for (const [name, code] of filesOfPage()) this.write(name, code);
  }

  /** The absolute path. */
  file(name: string): string {
    return join(this.path, name);
  }

  /** Writes a file and answers its absolute path. */
  write(name: string, text: string): string {
    writeFileSync(this.file(name), text);
    return this.file(name);
  }

  /** Loads a module into this very process, against the sources under test instead of the built package. */
  async load(name: string): Promise<void> {
    const source = pathToFileURL(resolve('src/index.ts')).pathname;
    const text = filesOfPage().get(name)!.replace("'rocev2'", JSON.stringify(source));
    await import(/* @vite-ignore */ this.write(`of-source-${name}`, text));
  }

  remove(): void {
    rmSync(this.path, { recursive: true });
  }
}
