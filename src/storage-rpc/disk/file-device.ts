/**
 * A disk in a file, `PATH`, with the CRC-32C of every 4 KiB beside it, in `PATH.crc32c`: what is read is what was written, or an error.
 *
 * The file is preallocated, so that the disk does not fill up under its users and a sync has only data to write. FLUSH and FUA are
 * fdatasync on both files; after one that failed the disk serves nobody, because the system may have dropped what it could not write.
 * A killed process loses nothing that was written; after a loss of power, blocks that were written and not yet flushed may hold the old
 * bytes, the new, or fail their check.
 */

import type { Stats } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import PQueue from 'p-queue';
import { crc32c } from '../../core/crc32c.js';
import { RoceError } from '../../core/errors.js';
import { whyUnreadable, whyUnwritable } from '../../core/file-errors.js';
import { BlockChecksums, readFully, writeFully } from './block-checksums.js';
import {
  type BlockDevice,
  BlockDeviceError,
  type BlockExtent,
  CHECKED_BLOCK_BYTES,
  checkRange,
  EXTENTS_MAX,
  isWholeBlocks,
  type WriteOptions,
  type WriteZeroesOptions,
} from './block-device.js';
import { lockFile, punchHole, reserve, systemLife } from './file-calls.js';
import { GroupCommit } from './group-commit.js';
import { RangeLock } from './range-lock.js';

/** More than Node's pool has threads by default (UV_THREADPOOL_SIZE), so that it never waits for us. */
const CONCURRENCY = 16;
/** For what goes over the whole disk: filling, checking, zeroing. */
const STRIDE_BYTES = 1 << 20;
const STRIDE_ZEROS = new Uint8Array(STRIDE_BYTES);

/** Whole blocks around a range of bytes. */
interface Blocks {
  readonly first: number;
  readonly count: number;
}

/** Options of a disk in a file. */
export interface FileDeviceOptions {
  /** Path of the data; the checksums are in `PATH.crc32c`. */
  readonly path: string;
  /** Size of a new file in bytes; an existing file must have this size. Default: the size of the file. */
  readonly sizeBytes?: number;
}

/** A disk in a file. Only one process at a time can open it. */
export class FileDevice implements BlockDevice {
  readonly sizeBytes: number;
  readonly blockBytes = 1;
  /** What was written and not synced is gone when the system starts anew, not before. */
  readonly storeId: bigint;
  /** Number of reads of damaged blocks. */
  checksumErrors = 0;
  readonly #data: FileHandle;
  readonly #sums: FileHandle;
  readonly #checksums: BlockChecksums;
  readonly #queue = new PQueue({ concurrency: CONCURRENCY });
  readonly #lock = new RangeLock();
  readonly #commit = new GroupCommit(() => this.#sync());
  #failure: BlockDeviceError | undefined;

  private constructor(
    sizeBytes: number,
    storeId: bigint,
    data: FileHandle,
    sums: FileHandle,
    checksums: BlockChecksums,
  ) {
    this.sizeBytes = sizeBytes;
    this.storeId = storeId;
    this.#data = data;
    this.#sums = sums;
    this.#checksums = checksums;
  }

  /**
   * Opens the disk, or makes it if the file does not exist. A file without checksums gets them, and keeps its data. Rejects with
   * ERR_ROCE_OUT_OF_RANGE for an impossible size, ERR_ROCE_MISMATCH if files and size do not match, ERR_ROCE_BUSY if another
   * process uses the file, and ERR_ROCE_IO.
   */
  static async open({ path, sizeBytes }: FileDeviceOptions): Promise<FileDevice> {
    const handles: FileHandle[] = [];
    if (sizeBytes !== undefined) checkSize(sizeBytes);
    try {
      const data = await openOrCreate(path, sizeBytes !== undefined);
      handles.push(data);
      if (!(await lockFile(data.fd))) throw new RoceError('ERR_ROCE_BUSY', `another process uses ${path}`);
      const stat = await data.stat();
      const isNew = stat.size === 0;
      const size = sizeOf(stat, path, sizeBytes);
      const sums = await openOrCreate(`${path}.crc32c`, true);
      handles.push(sums);
      if (isNew) {
        // A new disk is all zeros: it must never meet what an older one of its name left behind.
        await sums.truncate(0);
        await sums.sync();
        await data.truncate(size);
      }
      const blocks = size / CHECKED_BLOCK_BYTES;
      const found = await BlockChecksums.load(sums, blocks);
      if (found === 'other') {
        throw new RoceError(
          'ERR_ROCE_MISMATCH',
          `${path}.crc32c does not belong to ${path}`,
          'remove it to use the disk without these checksums',
        );
      }
      const checksums = found === 'none' ? await BlockChecksums.create(sums, blocks) : found;
      const device = new FileDevice(size, await systemLife(), data, sums, checksums);
      if (found === 'none') await device.#takeOver(isNew);
      else await device.#recover();
      await device.#sync();
      await syncFolder(path);
      return device;
    } catch (error) {
      for (const handle of handles) await handle.close();
      if (!(error instanceof Error) || !('syscall' in error)) throw error;
      const isMissing = sizeBytes === undefined && (error as NodeJS.ErrnoException).code === 'ENOENT';
      const why = isMissing ? whyUnreadable(error) : whyUnwritable(error);
      const hint = isMissing ? 'give a size to make it' : undefined;
      throw new RoceError('ERR_ROCE_IO', `cannot use ${path}: ${why}`, hint, { cause: error });
    }
  }

  read(offset: number, length: number, into: Uint8Array): Promise<void> {
    return this.#request(offset, length, 'EINVAL', false, async (blocks) => {
      if (isWholeBlocks(offset, length)) await this.#readBlocks(blocks, into.subarray(0, length));
      else {
        const whole = await this.#readBlocks(blocks);
        const begin = offset % CHECKED_BLOCK_BYTES;
        into.set(whole.subarray(begin, begin + length));
      }
    });
  }

  async readChecked(offset: number, length: number, into: Uint8Array): Promise<Uint32Array> {
    const crcs = new Uint32Array(length / CHECKED_BLOCK_BYTES);
    await this.#request(offset, length, 'EINVAL', false, async (blocks) => {
      await this.#readBlocks(blocks, into.subarray(0, length), crcs);
    });
    return crcs;
  }

  write(offset: number, data: Uint8Array, { fua = false, crcs }: WriteOptions = {}): Promise<void> {
    return this.#request(offset, data.length, 'ENOSPC', true, async (blocks) => {
      const isWhole = isWholeBlocks(offset, data.length);
      const whole = isWhole ? data : await this.#merged(blocks, offset, data);
      await this.#change(blocks, async () => {
        await this.#checksums.expect(blocks.first, whole, isWhole ? crcs : undefined);
        await writeFully(this.#data, whole, blocks.first * CHECKED_BLOCK_BYTES);
      });
      if (fua) await this.#commit.commit();
    });
  }

  flush(): Promise<void> {
    return this.#request(0, 0, 'EINVAL', false, () => this.#commit.commit());
  }

  async trim(offset: number, length: number): Promise<void> {
    checkRange(this, offset, length, 'EINVAL');
    // Blocks that are only in part in the range stay: a trim promises nothing.
    const begin = Math.ceil(offset / CHECKED_BLOCK_BYTES) * CHECKED_BLOCK_BYTES;
    const end = Math.floor((offset + length) / CHECKED_BLOCK_BYTES) * CHECKED_BLOCK_BYTES;
    await this.#zeroBlocks(begin, Math.max(0, end - begin), true);
  }

  async writeZeroes(offset: number, length: number, options: WriteZeroesOptions = {}): Promise<void> {
    checkRange(this, offset, length, 'ENOSPC');
    const end = offset + length;
    const bodyBegin = Math.min(end, Math.ceil(offset / CHECKED_BLOCK_BYTES) * CHECKED_BLOCK_BYTES);
    const bodyEnd = Math.max(bodyBegin, Math.floor(end / CHECKED_BLOCK_BYTES) * CHECKED_BLOCK_BYTES);
    await Promise.all([
      this.write(offset, new Uint8Array(bodyBegin - offset)),
      this.#zeroBlocks(bodyBegin, bodyEnd - bodyBegin, options.noHole !== true),
      this.write(bodyEnd, new Uint8Array(end - bodyEnd)),
    ]);
    if (options.fua === true) await this.flush();
  }

  /** Zeros are known from the checksums; what the file system holds of them is its own affair. */
  async blockStatus(offset: number, length: number): Promise<readonly BlockExtent[]> {
    const extents: Array<{ lengthBytes: number; hole: boolean; zero: boolean }> = [];
    await this.#request(offset, length, 'EINVAL', false, async ({ first }) => {
      for (let at = offset, block = first; at < offset + length && extents.length <= EXTENTS_MAX; block++) {
        const end = Math.min(offset + length, (block + 1) * CHECKED_BLOCK_BYTES);
        const zero = this.#checksums.isZero(block);
        const last = extents.at(-1);
        if (last?.zero === zero) last.lengthBytes += end - at;
        else extents.push({ lengthBytes: end - at, hole: false, zero });
        at = end;
      }
    });
    return extents;
  }

  async close(): Promise<void> {
    await this.#queue.onIdle();
    const failure = this.#failure;
    this.#failure = new BlockDeviceError('ESHUTDOWN', 'the disk is closed');
    if (failure?.errno === 'ESHUTDOWN') return;
    if (failure === undefined) {
      await this.#sync();
      // Only now: once the table says one value where there were two, the block has to be there.
      await this.#checksums.save();
      await this.#sums.datasync();
    }
    await this.#data.close();
    await this.#sums.close();
  }

  /** Same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Every request: checked, when its turn comes, with its blocks to itself or among readers. */
  async #request(
    offset: number,
    length: number,
    errno: 'EINVAL' | 'ENOSPC',
    exclusive: boolean,
    work: (blocks: Blocks) => Promise<void>,
  ): Promise<void> {
    checkRange(this, offset, length, errno);
    const first = Math.floor(offset / CHECKED_BLOCK_BYTES);
    const end = Math.ceil((offset + length) / CHECKED_BLOCK_BYTES);
    const blocks = { first, count: length === 0 ? 0 : end - first };
    await this.#queue.add(() =>
      this.#lock.run(first, end, exclusive, async () => {
        if (this.#failure !== undefined) throw this.#failure;
        try {
          await work(blocks);
        } catch (error) {
          throw asBlockDeviceError(error);
        }
      }),
    );
  }

  get #allBlocks(): Blocks {
    return { first: 0, count: this.sizeBytes / CHECKED_BLOCK_BYTES };
  }

  /** Whole blocks, checked; their CRCs are left in `crcs`. */
  async #readBlocks(
    { first, count }: Blocks,
    into: Uint8Array = Buffer.allocUnsafe(count * CHECKED_BLOCK_BYTES),
    crcs = new Uint32Array(count),
  ): Promise<Uint8Array> {
    await readFully(this.#data, into, first * CHECKED_BLOCK_BYTES);
    for (let i = 0; i < count; i++) {
      crcs[i] = crc32c(into.subarray(i * CHECKED_BLOCK_BYTES, (i + 1) * CHECKED_BLOCK_BYTES));
      if (this.#checksums.matches(first + i, crcs[i])) continue;
      this.checksumErrors++;
      const at = (first + i) * CHECKED_BLOCK_BYTES;
      throw new BlockDeviceError('EIO', `the 4 KiB at ${at} are damaged: their checksum is wrong`);
    }
    return into;
  }

  /** `data` in the blocks it lies in, with what stands before and behind it there. */
  async #merged(blocks: Blocks, offset: number, data: Uint8Array): Promise<Uint8Array> {
    const whole = Buffer.allocUnsafe(blocks.count * CHECKED_BLOCK_BYTES);
    const begin = offset % CHECKED_BLOCK_BYTES;
    const end = begin + data.length;
    const last = blocks.count - 1;
    const isLastPartial = end % CHECKED_BLOCK_BYTES !== 0;
    if (begin !== 0 || (last === 0 && isLastPartial)) {
      await this.#readBlocks({ first: blocks.first, count: 1 }, whole.subarray(0, CHECKED_BLOCK_BYTES));
    }
    if (last > 0 && isLastPartial) {
      await this.#readBlocks({ first: blocks.first + last, count: 1 }, whole.subarray(last * CHECKED_BLOCK_BYTES));
    }
    whole.set(data, begin);
    return whole;
  }

  #zeroBlocks(offset: number, length: number, mayPunch: boolean): Promise<void> {
    return this.#request(offset, length, 'EINVAL', true, async (blocks) => {
      if (blocks.count === 0) return;
      await this.#change(blocks, async () => {
        await this.#checksums.expectZeros(blocks.first, blocks.count);
        if (!(mayPunch && (await punchHole(this.#data.fd, offset, length)))) await this.#fillZeros(offset, length);
      });
    });
  }

  /** Has the blocks changed. Where that fails they are old or new: the next change must not begin before it is known which. */
  async #change(blocks: Blocks, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      await this.#settle(blocks).catch(() => {}); // What cannot be read stays open.
      throw error;
    }
    this.#checksums.commit(blocks.first, blocks.count);
  }

  async #fillZeros(offset: number, length: number): Promise<void> {
    for (let at = 0; at < length; at += STRIDE_BYTES) {
      await writeFully(this.#data, STRIDE_ZEROS.subarray(0, Math.min(STRIDE_BYTES, length - at)), offset + at);
    }
  }

  async #sync(): Promise<void> {
    try {
      await this.#sums.datasync();
      await this.#data.datasync();
    } catch (error) {
      this.#failure ??= new BlockDeviceError('EIO', 'a sync failed: written data may be lost', { cause: error });
      throw this.#failure;
    }
  }

  /** Gives a file that has none checksums, and the space it may need. */
  async #takeOver(isNew: boolean): Promise<void> {
    if (!isNew) await this.#forStrides(this.#allBlocks, async (first, bytes) => this.#checksums.adopt(first, bytes));
    await this.#preallocate();
    await this.#checksums.seal();
  }

  /** Gives the file all the space it may need. */
  async #preallocate(): Promise<void> {
    if (await reserve(this.#data.fd, 0, this.sizeBytes)) return;
    // Rewriting a block with what it holds gives it its space, too.
    await this.#forStrides(this.#allBlocks, (first, bytes) =>
      writeFully(this.#data, bytes, first * CHECKED_BLOCK_BYTES),
    );
  }

  /** Settles what a killed process left open. */
  async #recover(): Promise<void> {
    for (const run of this.#checksums.unresolved()) await this.#settle(run);
  }

  /** Finds out which of two values holds. Torn blocks keep failing until they are written. */
  #settle(run: Blocks): Promise<void> {
    return this.#forStrides(run, async (first, bytes) => {
      for (let at = 0, block = first; at < bytes.length; at += CHECKED_BLOCK_BYTES, block++) {
        this.#checksums.resolve(block, bytes.subarray(at, at + CHECKED_BLOCK_BYTES));
      }
    });
  }

  /** Reads blocks unchecked, a stride at a time. */
  async #forStrides(
    { first, count }: Blocks,
    work: (first: number, bytes: Uint8Array) => Promise<void>,
  ): Promise<void> {
    const strideBlocks = STRIDE_BYTES / CHECKED_BLOCK_BYTES;
    for (let done = 0; done < count; done += strideBlocks) {
      const bytes = Buffer.allocUnsafe(Math.min(strideBlocks, count - done) * CHECKED_BLOCK_BYTES);
      await readFully(this.#data, bytes, (first + done) * CHECKED_BLOCK_BYTES);
      await work(first + done, bytes);
    }
  }
}

/** Errors of the system by what they mean to a client; a defect of ours stays what it is. */
function asBlockDeviceError(error: unknown): unknown {
  if (!(error instanceof Error) || !('syscall' in error)) return error;
  const code = (error as NodeJS.ErrnoException).code;
  return new BlockDeviceError(code === 'ENOSPC' ? 'ENOSPC' : 'EIO', error.message, { cause: error });
}

async function openOrCreate(path: string, mayCreate: boolean): Promise<FileHandle> {
  try {
    return await open(path, 'r+');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || !mayCreate) throw error;
    return open(path, 'wx+');
  }
}

/** The size the disk has, or will have in a new file. */
function sizeOf(stat: Stats, path: string, asked: number | undefined): number {
  if (!stat.isFile()) throw new RoceError('ERR_ROCE_UNSUPPORTED', `${path} is not a regular file`);
  const size = stat.size === 0 ? (asked ?? 0) : stat.size;
  if (asked !== undefined && asked !== size) {
    throw new RoceError('ERR_ROCE_MISMATCH', `${path} has ${stat.size} bytes, not ${asked}`, 'leave the size out');
  }
  checkSize(size);
  return size;
}

function checkSize(sizeBytes: number): void {
  if (sizeBytes > 0 && sizeBytes % CHECKED_BLOCK_BYTES === 0) return;
  const hint = `give a multiple of ${CHECKED_BLOCK_BYTES}`;
  throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `a disk cannot have ${sizeBytes} bytes`, hint);
}

/** A file is there for good when its folder says so. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(dirname(path), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
