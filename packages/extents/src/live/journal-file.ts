import { type FileHandle, open, readFile, unlink } from 'node:fs/promises';
import { formatBytes, RoceError, whyUnwritable } from 'rocev2/internal/core';
import { syncFolder } from 'rocev2/internal/disk';
import { lockFile } from 'rocev2/internal/driver';
import { HandleFile } from './folder-files.js';

export const JOURNAL_BYTES = 64 << 20;
export const JOURNAL_BYTES_MIN = 1 << 20;
export const JOURNAL_BYTES_MAX = 2 ** 40;
const ZEROS = Buffer.alloc(1 << 20);
const SECTOR_BYTES = 512;

export class JournalFile extends HandleFile implements AsyncDisposable {
  readonly #path: string;
  readonly #bytes: number;
  readonly #isMade: boolean;

  private constructor(path: string, handle: FileHandle, bytes: number, isMade: boolean) {
    super(handle);
    this.#path = path;
    this.#bytes = bytes;
    this.#isMade = isMade;
  }

  static async open(path: string, newBytes = JOURNAL_BYTES): Promise<JournalFile> {
    let handle: FileHandle | undefined;
    let isMade = false;
    try {
      handle = await open(path, 'r+').catch(async (error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
        const made = await open(path, 'wx+');
        isMade = true;
        return made;
      });
      if (!(await lockFile(handle.fd)))
        throw new RoceError('ERR_ROCE_BUSY', `another process uses the journal ${path}`, 'end it, or name another');
      if (isMade) await fill(path, handle, newBytes);
      const bytes = await sizeOf(handle);
      if (bytes < JOURNAL_BYTES_MIN)
        throw new RoceError(
          'ERR_ROCE_OUT_OF_RANGE',
          `the journal ${path} has ${formatBytes(bytes)}, and needs ${formatBytes(JOURNAL_BYTES_MIN)} at least`,
          'name a larger device, or a file that is not there: it is made',
        );
      return new JournalFile(path, handle, bytes, isMade);
    } catch (cause) {
      await handle?.close();
      if (isMade) await unlink(path).catch(() => {});
      if (!(cause instanceof Error) || !('syscall' in cause)) throw cause;
      throw new RoceError('ERR_ROCE_IO', `cannot use the journal ${path}: ${whyUnwritable(cause)}`, undefined, {
        cause,
      });
    }
  }

  override async size(): Promise<number> {
    return this.#bytes;
  }

  override async close(): Promise<void> {
    if (this.#isMade && (await this.read(0, ZEROS.length)).every((byte) => byte === 0)) await unlink(this.#path);
    await super.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Preallocates, so that a sync has no metadata to write. */
async function fill(path: string, handle: FileHandle, bytes: number): Promise<void> {
  for (let at = 0; at < bytes; at += ZEROS.length) {
    const length = Math.min(ZEROS.length, bytes - at);
    await new HandleFile(handle).write(at, ZEROS.subarray(0, length));
  }
  await handle.sync();
  await syncFolder(path);
}

async function sizeOf(handle: FileHandle): Promise<number> {
  const stat = await handle.stat();
  if (!stat.isBlockDevice()) return stat.size;
  const { rdev } = stat;
  // <sys/sysmacros.h>: numbers of the device. Its size is in sectors of 512 bytes for all devices.
  const major = (rdev >>> 8) & 0xfff;
  const minor = (rdev & 0xff) | ((rdev >>> 12) & 0xf_ff00);
  return SECTOR_BYTES * Number(await readFile(`/sys/dev/block/${major}:${minor}/size`, 'utf8'));
}
