/** The files of an extent node in a folder of this machine. A name is durable once its folder has been synced. */

import { type FileHandle, mkdir, open, readdir, statfs, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExtentFile, ExtentFiles } from '../extent-files.js';

/** Files in one folder. */
export class FolderFiles implements ExtentFiles {
  readonly #path: string;

  private constructor(path: string) {
    this.#path = path;
  }

  /** Opens a folder, and makes it if there is none. Rejects with the error of the operating system. */
  static async open(path: string): Promise<FolderFiles> {
    await mkdir(path, { recursive: true });
    return new FolderFiles(path);
  }

  async list(): Promise<readonly string[]> {
    return readdir(this.#path);
  }

  async create(name: string): Promise<ExtentFile> {
    const handle = await open(join(this.#path, name), 'wx+');
    await this.#syncNames();
    return new FolderFile(handle);
  }

  async open(name: string): Promise<ExtentFile> {
    return new FolderFile(await open(join(this.#path, name), 'r+'));
  }

  async remove(name: string): Promise<void> {
    await unlink(join(this.#path, name));
    await this.#syncNames();
  }

  async freeBytes(): Promise<number> {
    const { bavail, bsize } = await statfs(this.#path);
    return bavail * bsize;
  }

  async #syncNames(): Promise<void> {
    const folder = await open(this.#path, 'r');
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  }
}

class FolderFile implements ExtentFile {
  readonly #handle: FileHandle;

  constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  async size(): Promise<number> {
    return (await this.#handle.stat()).size;
  }

  async read(offset: number, length: number): Promise<Buffer> {
    const bytes = Buffer.allocUnsafe(Math.max(0, length));
    let at = 0;
    while (at < bytes.length) {
      const { bytesRead } = await this.#handle.read(bytes, at, bytes.length - at, offset + at);
      if (bytesRead === 0) break;
      at += bytesRead;
    }
    return bytes.subarray(0, at);
  }

  async write(offset: number, bytes: Uint8Array): Promise<void> {
    let at = 0;
    while (at < bytes.length) at += (await this.#handle.write(bytes, at, bytes.length - at, offset + at)).bytesWritten;
  }

  sync(): Promise<void> {
    return this.#handle.datasync();
  }

  truncate(length: number): Promise<void> {
    return this.#handle.truncate(length);
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}
