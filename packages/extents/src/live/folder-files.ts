/** Files in a locked folder. A name is durable once its folder has been synced. */

import { type FileHandle, open, readdir, realpath, rename, statfs, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { RoceError } from 'rocev2/internal/core';
import { lockFile, makeFolder, removeIfEmpty, unusableFolder } from 'rocev2/internal/driver';
import type { ExtentFile, ExtentFiles } from '../extent-files.js';

export class FolderFiles implements ExtentFiles, AsyncDisposable {
  readonly #path: string;
  /** Open as long as the folder is in use: it carries the lock. */
  readonly #folder: FileHandle;
  readonly #made: readonly string[];

  private constructor(path: string, folder: FileHandle, made: readonly string[]) {
    this.#path = path;
    this.#folder = folder;
    this.#made = made;
  }

  /**
   * Rejects with ERR_ROCE_BUSY while another process has it (Linux with koffi; elsewhere nothing keeps a second one
   * out), and with ERR_ROCE_IO if it cannot be made or opened.
   */
  static async open(path: string): Promise<FolderFiles> {
    const made = await makeFolder(path);
    let folder: FileHandle;
    try {
      folder = await open(path, 'r');
    } catch (cause) {
      throw unusableFolder(path, cause);
    }
    if (await lockFile(folder.fd)) return new FolderFiles(path, folder, made);
    await folder.close();
    throw new RoceError('ERR_ROCE_BUSY', `another process uses the folder ${path}`, 'end it, or name another folder');
  }

  /** Without links: the same for every name of the folder. */
  path(): Promise<string> {
    return realpath(this.#path);
  }

  async named<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (cause) {
      if (cause instanceof Error && 'syscall' in cause) throw unusableFolder(this.#path, cause);
      throw cause;
    }
  }

  /** One that it has made, and that nothing has been written into, goes with it. */
  async close(): Promise<void> {
    await removeIfEmpty(this.#made);
    await this.#folder.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async list(): Promise<readonly string[]> {
    const names = await readdir(this.#path);
    return names.filter((name) => name !== 'lost+found');
  }

  async create(name: string): Promise<ExtentFile> {
    const handle = await open(join(this.#path, name), 'wx+');
    await this.#syncNames();
    return new HandleFile(handle);
  }

  async open(name: string): Promise<ExtentFile> {
    return new HandleFile(await open(join(this.#path, name), 'r+'));
  }

  async remove(name: string): Promise<void> {
    await unlink(join(this.#path, name));
    await this.#syncNames();
  }

  async rename(name: string, to: string): Promise<void> {
    await rename(join(this.#path, name), join(this.#path, to));
    await this.#syncNames();
  }

  async freeBytes(): Promise<number> {
    const { bavail, bsize } = await statfs(this.#path);
    return bavail * bsize;
  }

  #syncNames(): Promise<void> {
    return this.#folder.sync();
  }
}

export class HandleFile implements ExtentFile {
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
