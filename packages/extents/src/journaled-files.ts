import type { ExtentFile, ExtentFiles } from './extent-files.js';
import type { Journal } from './journal.js';

export class JournaledFiles implements ExtentFiles {
  readonly #files: ExtentFiles;
  readonly #journal: Journal;

  constructor(files: ExtentFiles, journal: Journal) {
    this.#files = files;
    this.#journal = journal;
  }

  list(): Promise<readonly string[]> {
    return this.#files.list();
  }

  async create(name: string): Promise<ExtentFile> {
    this.#journal.check();
    return new JournaledFile(name, await this.#files.create(name), this.#journal, false);
  }

  async open(name: string): Promise<ExtentFile> {
    return new JournaledFile(name, await this.#files.open(name), this.#journal, true);
  }

  /** The journal has no change of a file that has been closed, so none is done again in a later file of this name. */
  remove(name: string): Promise<void> {
    return this.#files.remove(name);
  }

  rename(name: string, to: string): Promise<void> {
    return this.#files.rename(name, to);
  }

  freeBytes(): Promise<number> {
    return this.#files.freeBytes();
  }
}

class JournaledFile implements ExtentFile {
  readonly #name: string;
  readonly #file: ExtentFile;
  readonly #journal: Journal;
  /**
   * Writes that bypass the journal: those that were too long for it, and unsynced writes of an earlier start.
   */
  #passed: number;
  #synced = 0;

  constructor(name: string, file: ExtentFile, journal: Journal, isOld: boolean) {
    this.#name = name;
    this.#file = file;
    this.#journal = journal;
    this.#passed = isOld ? 1 : 0;
  }

  size(): Promise<number> {
    return this.#file.size();
  }

  read(offset: number, length: number): Promise<Buffer> {
    return this.#file.read(offset, length);
  }

  async write(offset: number, bytes: Uint8Array): Promise<void> {
    this.#journal.check();
    await this.#file.write(offset, bytes);
    const isLong = bytes.length > this.#journal.changeMax;
    if (isLong) this.#passed++;
    else this.#journal.add(this.#file, { name: this.#name, offset, bytes });
  }

  async sync(): Promise<void> {
    const passed = this.#passed;
    if (this.#synced === passed) return this.#journal.commit();
    await this.#journal.commitTo(this.#file);
    this.#synced = Math.max(this.#synced, passed);
  }

  async truncate(length: number): Promise<void> {
    this.#journal.check();
    await this.#file.truncate(length);
    this.#journal.add(this.#file, { name: this.#name, offset: length, bytes: undefined });
  }

  async close(): Promise<void> {
    await this.#journal.release(this.#file);
    await this.#file.close();
  }
}
