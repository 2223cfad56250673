/**
 * A disk in a file `PATH`, with check values of every 4 KiB in `PATH.crc32c`. FLUSH and FUA are fdatasync on both
 * files; after one fails the disk refuses everything, because the system may have dropped dirty pages. A killed process
 * loses nothing written; after a power loss unflushed blocks may be old, new, or fail their check. The disk serves at
 * once after either: blocks in doubt match both values and are settled in the background or before they change.
 */

import type { FileHandle } from 'node:fs/promises';
import PQueue from 'p-queue';
import { checkKind, checkObject, ifGiven } from '../../core/arguments.js';
import { PromiseMutex } from '../../core/promise-mutex.js';
import { punchHole, systemLife as systemBootId } from '../../driver/file-calls.js';
import { BlockChecksums } from './block-checksums.js';
import {
  type BlockDevice,
  BlockDeviceError,
  type BlockExtent,
  CHECKED_BLOCK_BYTES,
  checkedBlocks,
  checkRange,
  EXTENTS_MAX,
  isWholeBlocks,
  type WriteOptions,
  type WriteZeroesOptions,
} from './block-device.js';
import { type BlockRange, CheckedBlocks, regionsOf } from './checked-blocks.js';
import { type ChecksumHeader, nextHeader, REGION_BLOCKS, writeHeader } from './checksum-format.js';
import type { DiskIdentity } from './disk-identity.js';
import { forStrides } from './file-io.js';
import { GroupCommit } from './group-commit.js';
import { LeaseCopies } from './lease-record.js';
import type { LeaseStore } from './lease-store.js';
import { type OpenedFiles, type OpenFilesOptions, openFiles } from './open-files.js';
import { RangeLock } from './range-lock.js';
import { RegionMap } from './region-map.js';
import { RegionRecovery } from './region-recovery.js';

/** More than Node's pool has threads by default (UV_THREADPOOL_SIZE), so that it never waits for us. */
const CONCURRENCY = 16;
const TABLE_MEMORY_BYTES = 64 << 20;
/** Regions that one request reads to prove them. */
const PROOFS_MAX = 16;

/** Options of a disk in a file. */
export interface FileDeviceOptions extends OpenFilesOptions {
  /** Memory for the table of checksums, in bytes; 2 MiB is enough for each GiB in use at a time. Default 64 MiB. */
  readonly tableMemoryBytes?: number | undefined;
}

/** A disk in a file. Only one process at a time can open it. */
export class FileDevice implements BlockDevice {
  readonly sizeBytes: number;
  readonly blockBytes = 1;
  /** Unsynced writes are lost when the system restarts, not before. */
  readonly writeVerifier: bigint;
  #header: ChecksumHeader;
  #hasChanged = false;
  /** Regions whose checksums are known to be of the data. */
  #proven: { has(region: number): boolean; add(region: number): unknown } = new Set<number>();
  readonly #checkpoints = new PromiseMutex();
  /** Whether all its space is reserved, and kept. */
  readonly thick: boolean;
  /** @internal */
  readonly leaseStore: LeaseStore;
  readonly #data: FileHandle;
  readonly #sums: FileHandle;
  readonly #regions: RegionMap;
  readonly #checksums: BlockChecksums;
  readonly #blocks: CheckedBlocks;
  readonly #recovery: RegionRecovery;
  readonly #queue = new PQueue({ concurrency: CONCURRENCY });
  readonly #lock = new RangeLock();
  readonly #commit = new GroupCommit(() => this.#sync());
  readonly #sumsCommit = new GroupCommit(() => this.#guarded(() => this.#sums.datasync()));
  #failure: BlockDeviceError | undefined;
  #canPunch: Promise<boolean> | undefined;
  readonly #path: string;
  readonly #onNotice: ((notice: string) => void) | undefined;
  /** Requests that have failed since the file system is full. */
  #withoutSpace = 0;

  private constructor(
    { data, sums, header, leases }: OpenedFiles & { readonly leases: LeaseCopies },
    states: (sync: () => Promise<void>) => RegionMap,
    writeVerifier: bigint,
    { path, tableMemoryBytes = TABLE_MEMORY_BYTES, onNotice }: FileDeviceOptions,
  ) {
    this.#path = path;
    this.#onNotice = onNotice;
    this.sizeBytes = header.sizeBytes;
    this.#header = header;
    this.thick = header.thick;
    this.writeVerifier = writeVerifier;
    this.#data = data;
    this.#sums = sums;
    this.leaseStore = {
      initial: leases.initial,
      save: (record) =>
        this.#request(0, 0, 'EINVAL', false, async () => {
          await leases.write(record);
          await this.#sumsCommit.commit();
        }),
    };
    this.#regions = states(() => this.#sumsCommit.commit());
    this.#checksums = new BlockChecksums(sums, this.#regions, tableMemoryBytes);
    this.#blocks = new CheckedBlocks({
      data,
      sizeBytes: this.sizeBytes,
      regions: this.#regions,
      checksums: this.#checksums,
      thick: this.thick,
      onDoubt: () => this.#recovery.start(),
    });
    this.#recovery = new RegionRecovery({
      regions: this.#regions,
      blocks: checkedBlocks(this.sizeBytes),
      settle: (first, count) => this.#exclusively({ first, count }, (blocks) => this.#blocks.settle(blocks)),
      sync: () => this.#commit.commit(),
      onDone: ({ newer, older, torn }, regions) => {
        const open = newer + older + torn;
        const lost = torn === 0 ? 'none is damaged' : `${torn} are damaged and fail until they are written`;
        onNotice?.(`checked ${path} after a crash: ${regions} regions, ${open} open blocks, ${lost}`);
      },
    });
  }

  /**
   * Opens the disk, or makes it if there is no such file and a size is given. A file without checksums gets them, and
   * keeps its data. Rejects with ERR_ROCE_OUT_OF_RANGE for an impossible size, ERR_ROCE_MISMATCH if files and size do
   * not match, or checksums exist without their data. Rejects with ERR_ROCE_CONFLICT for `create` if the data file
   * exists, ERR_ROCE_UNSUPPORTED for a newer format, ERR_ROCE_BUSY if another process uses the file, and ERR_ROCE_IO.
   */
  static async open(options: FileDeviceOptions): Promise<FileDevice> {
    checkObject('the options of FileDevice.open', options, 'an object');
    const { path, sizeBytes } = options;
    checkKind('path', path, typeof path === 'string' && path !== '', 'a path');
    ifGiven(sizeBytes, (value) => checkKind('sizeBytes', value, typeof value === 'number', 'a number of bytes'));
    const writeVerifier = await systemBootId();
    const files = await openFiles(options);
    const { data, sums, header } = files;
    try {
      const load = await RegionMap.load(sums, checkedBlocks(header.sizeBytes));
      const leases = await LeaseCopies.load(sums);
      const device = new FileDevice({ ...files, leases }, load, writeVerifier, options);
      if (files.areTogether) device.#proven = { has: () => true, add: () => {} };
      device.#recovery.start();
      return device;
    } catch (error) {
      await data.close();
      await sums.close();
      throw error;
    }
  }

  get identity(): DiskIdentity {
    const { uuid, generation, name, openings } = this.#header;
    return { uuid, generation, name, openings };
  }

  /**
   * Counts a checkpoint, durably, if the disk was written since the last one: a copy of the files that was made before
   * has fewer, also after it has been opened again. @internal
   */
  checkpoint(): Promise<void> {
    return this.#checkpoints.run(async () => {
      if (!this.#hasChanged) return;
      const [{ mark, checkpoint }, ...earlier] = this.#header.openings;
      const next = nextHeader(this.#header, { openings: [{ mark, checkpoint: checkpoint + 1 }, ...earlier] });
      await this.#request(0, 0, 'EINVAL', false, async () => {
        this.#hasChanged = false;
        await writeHeader(this.#sums, next);
        await this.#sumsCommit.commit();
      });
      this.#header = next;
    });
  }

  /** Number of reads of damaged blocks. */
  get checksumErrors(): number {
    return this.#blocks.errors;
  }

  /** Memory in use for the table of checksums, bytes. */
  get tableMemoryBytes(): number {
    return this.#checksums.memoryBytes;
  }

  /** Regions of 64 MiB that are still to be checked after a crash; requests need not wait for that. */
  get unsettledRegions(): number {
    return this.#regions.unsettled;
  }

  async read(offset: number, length: number, into: Uint8Array): Promise<void> {
    checkRange(this, offset, length, 'EINVAL', into);
    await this.#request(offset, length, 'EINVAL', false, (blocks) =>
      this.#blocks.hold(blocks, async () => {
        if (isWholeBlocks(offset, length)) await this.#blocks.read(blocks, into.subarray(0, length));
        else {
          const whole = await this.#blocks.read(blocks);
          const begin = offset % CHECKED_BLOCK_BYTES;
          into.set(whole.subarray(begin, begin + length));
        }
      }),
    );
  }

  async readChecked(offset: number, length: number, into: Uint8Array): Promise<Uint32Array> {
    checkRange(this, offset, length, 'EINVAL', into);
    const crcs = new Uint32Array(length / CHECKED_BLOCK_BYTES);
    await this.#request(offset, length, 'EINVAL', false, (blocks) =>
      this.#blocks.hold(blocks, async () => {
        await this.#blocks.read(blocks, into.subarray(0, length), crcs);
      }),
    );
    return crcs;
  }

  async write(offset: number, data: Uint8Array, options?: WriteOptions): Promise<void> {
    checkRange(this, offset, data?.length, 'ENOSPC', data);
    await this.#request(offset, data.length, 'ENOSPC', true, async (blocks) => {
      this.#hasChanged = true;
      await this.#blocks.hold(blocks, async () => {
        const isWhole = isWholeBlocks(offset, data.length);
        const whole = isWhole ? data : await this.#blocks.merged(blocks, offset, data);
        await this.#blocks.write(blocks, whole, isWhole ? options?.crcs : undefined);
      });
      if (options?.fua === true) await this.#commit.commit();
    });
  }

  flush(): Promise<void> {
    return this.#request(0, 0, 'EINVAL', false, () => this.#commit.commit());
  }

  async trim(offset: number, length: number): Promise<void> {
    checkRange(this, offset, length, 'EINVAL');
    // Blocks that are only in part in the range stay: a trim promises nothing.
    const begin = Math.ceil(offset / CHECKED_BLOCK_BYTES) * CHECKED_BLOCK_BYTES;
    const end = this.#endOfWholeBlocks(offset + length);
    await this.#zeroBlocks(begin, Math.max(0, end - begin), !this.thick);
  }

  async writeZeroes(offset: number, length: number, options?: WriteZeroesOptions): Promise<void> {
    checkRange(this, offset, length, 'ENOSPC');
    if (options?.fast === true && !(await this.#zeroesFast(offset, length, options?.noHole === true))) {
      throw new BlockDeviceError('ENOTSUP', 'zeros would have to be written');
    }
    const end = offset + length;
    const bodyBegin = Math.min(end, Math.ceil(offset / CHECKED_BLOCK_BYTES) * CHECKED_BLOCK_BYTES);
    const bodyEnd = Math.max(bodyBegin, this.#endOfWholeBlocks(end));
    await Promise.all([
      this.write(offset, new Uint8Array(bodyBegin - offset)),
      this.#zeroBlocks(bodyBegin, bodyEnd - bodyBegin, !this.thick && options?.noHole !== true),
      this.write(bodyEnd, new Uint8Array(end - bodyEnd)),
    ]);
    if (options?.fua === true) await this.flush();
  }

  /**
   * The checksums show which blocks are zero. In a thin disk they are holes: the file system may have allocated some of
   * them, but the disk does not reserve them.
   */
  async blockStatus(offset: number, length: number): Promise<readonly BlockExtent[]> {
    checkRange(this, offset, length, 'EINVAL');
    const extents: Array<{ lengthBytes: number; hole: boolean; zero: boolean }> = [];
    const end = offset + length;
    const append = (lengthBytes: number, zero: boolean) => {
      const last = extents.at(-1);
      if (last?.zero === zero) last.lengthBytes += lengthBytes;
      else extents.push({ lengthBytes, hole: zero && !this.thick, zero });
    };
    await this.#request(offset, length, 'EINVAL', false, async (blocks) => {
      let at = offset;
      let proofs = 0;
      for (const piece of regionsOf(blocks)) {
        if (extents.length > EXTENTS_MAX) return;
        if (!this.#proven.has(piece.region)) {
          if (proofs === PROOFS_MAX && extents.length > 0) return; // The rest is asked for again.
          proofs++;
          await this.#prove(piece.region);
        }
        if (!this.#proven.has(piece.region)) {
          const pieceEnd = Math.min(end, (piece.first + piece.count) * CHECKED_BLOCK_BYTES);
          append(pieceEnd - at, false);
          at = pieceEnd;
          continue;
        }
        if (!this.#regions.isUsed(piece.region)) {
          const pieceEnd = Math.min(end, (piece.first + piece.count) * CHECKED_BLOCK_BYTES);
          append(pieceEnd - at, true);
          at = pieceEnd;
          continue;
        }
        await this.#blocks.hold(piece, async () => {
          for (let block = piece.first; block < piece.first + piece.count && extents.length <= EXTENTS_MAX; block++) {
            const blockEnd = Math.min(end, (block + 1) * CHECKED_BLOCK_BYTES);
            append(blockEnd - at, this.#checksums.isZero(block));
            at = blockEnd;
          }
        });
      }
    });
    return extents;
  }

  /**
   * Where the files were not closed, or were copied, checksums may be older than the data: zeros are reported only of
   * regions that were read.
   */
  async #prove(region: number): Promise<void> {
    const first = region * REGION_BLOCKS;
    const count = Math.min(REGION_BLOCKS, checkedBlocks(this.sizeBytes) - first);
    const damaged = await this.#blocks.hold({ first, count }, () => this.#blocks.damagedIn({ first, count }));
    if (damaged.length === 0) this.#proven.add(region);
  }

  /**
   * Reads whole blocks only to check them; returns the offsets of damaged ones. Blocks that were never written are not
   * read. Rejects as {@link read}.
   */
  async verify(offset: number, length: number): Promise<number[]> {
    const damaged: number[] = [];
    await this.#request(offset, length, 'EINVAL', false, async (blocks) => {
      for (const piece of regionsOf(blocks)) {
        if (!this.#regions.isUsed(piece.region)) continue;
        damaged.push(...(await this.#blocks.hold(piece, () => this.#blocks.damagedIn(piece))));
      }
    });
    return damaged;
  }

  /** Loads the checksums of used regions into memory, and makes the system read the data ahead. */
  prefetch(offset: number, length: number): Promise<void> {
    return this.#request(offset, length, 'EINVAL', false, async (blocks) => {
      for (const piece of regionsOf(blocks)) {
        if (!this.#regions.isUsed(piece.region)) continue;
        await this.#blocks.hold(piece, () => forStrides(this.#data, piece.first, piece.count, async () => {}));
      }
    });
  }

  /** Whether anything but zeros was ever written to the region of 64 MiB that begins at `offset` or is around it. */
  isUsed(offset: number): boolean {
    return this.#regions.isUsed(Math.floor(offset / CHECKED_BLOCK_BYTES / REGION_BLOCKS));
  }

  async close(): Promise<void> {
    await this.#recovery.stop();
    await this.#queue.onIdle();
    const failure = this.#failure;
    this.#failure = new BlockDeviceError('ESHUTDOWN', 'the disk is closed');
    if (failure?.errno === 'ESHUTDOWN') return;
    try {
      if (failure === undefined) {
        await this.#sync(true);
        const { mtimeNs } = await this.#data.stat({ bigint: true });
        await writeHeader(this.#sums, nextHeader(this.#header, { closedNs: mtimeNs }));
        await this.#sums.datasync();
      }
    } finally {
      await this.#data.close();
      await this.#sums.close();
    }
  }

  /** Same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #request(
    offset: number,
    length: number,
    errno: 'EINVAL' | 'ENOSPC',
    exclusive: boolean,
    work: (blocks: BlockRange) => Promise<void>,
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
          if (exclusive && this.#withoutSpace > 0) this.#reportSpace();
        } catch (error) {
          const failure = asBlockDeviceError(error);
          if (failure !== error && (failure as BlockDeviceError).errno === 'ENOSPC') this.#reportNoSpace();
          throw failure;
        }
      }),
    );
  }

  /** A full file system is reported once, until a write succeeds. */
  #reportNoSpace(): void {
    if (++this.#withoutSpace === 1) this.#onNotice?.(`no space is left for ${this.#path}: writes fail with ENOSPC`);
  }

  #reportSpace(): void {
    this.#onNotice?.(`${this.#path} has space again; requests that failed: ${this.#withoutSpace}`);
    this.#withoutSpace = 0;
  }

  async #exclusively<T>(blocks: BlockRange, work: (blocks: BlockRange) => Promise<T>): Promise<T> {
    const run = () =>
      this.#lock.run(blocks.first, blocks.first + blocks.count, true, () =>
        this.#blocks.hold(blocks, () => work(blocks)),
      );
    return (await this.#queue.add(run)) as T;
  }

  /** Support is probed beyond the end, where it changes nothing. */
  async #zeroesFast(offset: number, length: number, noHole: boolean): Promise<boolean> {
    const end = offset + length;
    if (this.thick || noHole || offset % CHECKED_BLOCK_BYTES !== 0 || this.#endOfWholeBlocks(end) !== end) return false;
    const pastEnd = checkedBlocks(this.sizeBytes) * CHECKED_BLOCK_BYTES;
    this.#canPunch ??= punchHole(this.#data.fd, pastEnd, CHECKED_BLOCK_BYTES);
    return this.#canPunch;
  }

  /**
   * Where the last block that is whole before `end` ends; the last block of the disk is whole without what is past its
   * end.
   */
  #endOfWholeBlocks(end: number): number {
    return end === this.sizeBytes ? end : Math.floor(end / CHECKED_BLOCK_BYTES) * CHECKED_BLOCK_BYTES;
  }

  /** `mayPunch`: the range may give its space back; else it has it reserved. */
  #zeroBlocks(offset: number, length: number, mayPunch: boolean): Promise<void> {
    return this.#request(offset, length, 'EINVAL', true, async (blocks) => {
      this.#hasChanged = true;
      for (const piece of regionsOf(blocks)) {
        if (this.#regions.isUsed(piece.region))
          await this.#blocks.hold(piece, () => this.#blocks.zero(piece, mayPunch));
        else if (!(mayPunch || this.thick)) await this.#blocks.storeZeros(piece, false);
      }
    });
  }

  async #sync(atEnd = false): Promise<void> {
    this.#regions.onSyncBegins();
    const written = this.#blocks.written.take();
    await this.#guarded(async () => {
      await this.#sums.datasync();
      await this.#data.datasync();
    });
    await this.#regions.release(atEnd);
    if (atEnd) return;
    // A writer with FUA waits for this sync, and holds its blocks.
    for (const run of written) this.#exclusively(run, (blocks) => this.#blocks.forgetOlder(blocks)).catch(() => {});
  }

  /** Data that the system failed to write may be lost, even if the next sync succeeds. */
  async #guarded(sync: () => Promise<void>): Promise<void> {
    try {
      await sync();
    } catch (error) {
      const errno = (error as NodeJS.ErrnoException).code === 'ENOSPC' ? 'ENOSPC' : 'EIO';
      this.#failure ??= new BlockDeviceError(errno, 'a sync failed: written data may be lost', { cause: error });
      throw this.#failure;
    }
  }
}

function asBlockDeviceError(error: unknown): unknown {
  if (!(error instanceof Error) || !('syscall' in error)) return error;
  const code = (error as NodeJS.ErrnoException).code;
  return new BlockDeviceError(code === 'ENOSPC' ? 'ENOSPC' : 'EIO', error.message, { cause: error });
}
