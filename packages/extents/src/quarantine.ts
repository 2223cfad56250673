/**
 * Deleted files of a node. They keep their bytes under another name for some time, so that an operator can undo a
 * deletion. They never take more space than is free.
 */

import { DurableValue } from './durable-value.js';
import type { ExtentFiles } from './extent-files.js';
import type { ExtentOrigin } from './metadata-schema.js';

const SUFFIX = '.deleted';

export function isQuarantined(name: string): boolean {
  return name.endsWith(SUFFIX);
}

interface DeletedFile {
  readonly bytes: number;
  readonly sinceNs: number;
}

export class Quarantine {
  readonly #files: ExtentFiles;
  /** The oldest first. */
  readonly #deleted = new Map<string, DeletedFile>();
  #nowNs = 0;

  constructor(files: ExtentFiles) {
    this.#files = files;
  }

  /** Names that the files had. */
  get names(): readonly string[] {
    return [...this.#deleted.keys()];
  }

  /** Takes over a file of an earlier start: its time begins again. */
  async recover(name: string): Promise<void> {
    const file = await this.#files.open(name);
    const bytes = await file.size();
    await file.close();
    this.#deleted.set(name.slice(0, -SUFFIX.length), { bytes, sinceNs: this.#nowNs });
  }

  /** Takes a closed file. */
  async take(name: string, bytes: number): Promise<void> {
    await this.#files.rename(name, name + SUFFIX);
    this.#deleted.delete(name);
    this.#deleted.set(name, { bytes, sinceNs: this.#nowNs });
  }

  /** What the head of a file says. Undefined: it is damaged. */
  async state(name: string): Promise<{ readonly extent: number; readonly of?: ExtentOrigin } | undefined> {
    const file = await this.#files.open(name + SUFFIX);
    const { value } = await DurableValue.load<{ extent: number; of?: ExtentOrigin }>(file);
    await file.close();
    return value;
  }

  /** Gives a file its name back. */
  async restore(name: string): Promise<void> {
    await this.#files.rename(name + SUFFIX, name);
    this.#deleted.delete(name);
  }

  /** Deletes files whose time is over, and the oldest ones while all of them have more bytes than are free. */
  async release(nowNs: number, keepNs: number, freeBytes: number): Promise<void> {
    this.#nowNs = nowNs;
    let bytes = 0;
    for (const one of this.#deleted.values()) bytes += one.bytes;
    let free = freeBytes;
    for (const [name, one] of [...this.#deleted]) {
      if (nowNs - one.sinceNs < keepNs && bytes <= free) return;
      this.#deleted.delete(name);
      await this.#files.remove(name + SUFFIX);
      bytes -= one.bytes;
      free += one.bytes;
    }
  }
}
