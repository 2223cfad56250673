/**
 * A disk over a stream. A write is a log record, acknowledged when its append is durable on three nodes; so flush does
 * nothing and every write is FUA. The map is updated on acknowledgement, in log order. The log's lease fences the
 * previous owner.
 */

import { RpcError } from '@rocev2/rpc';
import {
  type BlockDevice,
  BlockDeviceError,
  type BlockExtent,
  checkRange,
  type DiskIdentity,
  isWholeBlocks,
  NotOwnerError,
  RangeLock,
  type WriteOptions,
} from 'rocev2/internal/disk';
import { codeOf } from '../messages.js';
import { recordBytes } from '../record.js';
import { type Location, StreamWriter } from '../stream-writer.js';
import { allOf } from './all-of.js';
import { type BlockMap, DISK_BLOCK_BYTES, PAGE_BYTES, RECORD_BLOCKS_MAX } from './block-map.js';
import { BlockReads } from './block-reads.js';
import { Cleaner, type MovedBlock } from './cleaner.js';
import { type DiskParts, logOf, mapOf } from './disk-parts.js';
import { applyLogRecord, encodeLogRecord, type LogRecord } from './log-records.js';
import type { DiskMetadata } from './map-records.js';
import { MapStore } from './map-store.js';
import { findRoot, recoverDisk } from './recovery.js';

/** A checkpoint is written when the log has grown by this many times its size. */
const LOG_PER_CHECKPOINT = 4;
/** Most bytes of log between two checkpoints: what a recovery reads. */
const LOG_BYTES_MAX = 2 ** 32;
const LOG_AHEAD = 4;

/** Counters of a disk. */
export interface StreamDiskCounters {
  /** Checkpoints of the map. */
  readonly checkpoints: number;
  /** Extents released. */
  readonly freed: number;
  /** Blocks that the cleaner has rewritten. */
  readonly moved: number;
  /** Blocks in the map; all others read as zeros. */
  readonly liveBlocks: number;
  /** Memory of the map, bytes. */
  readonly mapBytes: number;
}

interface Ownership {
  readonly log: StreamWriter;
  readonly store: MapStore;
  readonly cleaner: Cleaner;
}

/** A disk of a cluster. */
export class StreamDisk implements BlockDevice {
  /** What it is. */
  readonly metadata: DiskMetadata;
  /** Offsets and lengths are free; whole blocks of 4 KiB are faster. */
  readonly blockBytes = 1;
  readonly #map: BlockMap;
  readonly #blocks: BlockReads;
  readonly #ownership: Ownership | undefined;
  readonly #lock = new RangeLock();
  readonly #underWay = new Set<Promise<unknown>>();
  #position: Location | undefined;
  #logBytes = 0;
  #clearedBytes = 0;
  #maintenance: Promise<void> | undefined;
  #isClosed = false;
  #onClose: () => void = () => {};
  readonly #closing = new Promise<void>((resolve) => {
    this.#onClose = resolve;
  });

  private constructor(
    parts: DiskParts,
    metadata: DiskMetadata,
    { map, position }: { readonly map: BlockMap; readonly position: Location | undefined },
    owned?: { readonly log: StreamWriter; readonly store: MapStore },
  ) {
    this.metadata = metadata;
    this.#map = map;
    this.#blocks = new BlockReads(parts, map, metadata.name);
    this.#position = position;
    if (owned === undefined) return;
    const cleaner = new Cleaner(parts, {
      name: metadata.name,
      map,
      epoch: owned.log.epoch,
      extentBytes: owned.log.extentBytes,
      get position() {
        return owned.store.position;
      },
      get current() {
        return owned.log.extent?.extent;
      },
      move: (blocks) => this.#move(blocks),
    });
    this.#ownership = { ...owned, cleaner };
  }

  /**
   * Becomes the owner of a disk, and reads it. Rejects with BUSY while it has another owner, unless `takeOver`: then
   * that one is fenced. MISSING: there is no such disk, or it was never finished. @internal
   */
  static async open(
    parts: DiskParts,
    { name, owner, takeOver }: { readonly name: string; readonly owner: string; readonly takeOver: boolean },
  ): Promise<StreamDisk> {
    const onExtent = parts.reader.learn.bind(parts.reader);
    const onLease = (why: Error | undefined) => parts.onNotice?.(leaseNotice(name, why));
    const opened = await StreamWriter.open({ stream: logOf(name), owner, takeOver }, { ...parts, onExtent, onLease });
    const log = opened.writer;
    let map: StreamWriter | undefined;
    try {
      // The owner of the log owns the map, whose recorded owner may be one that has lost the log without knowing it
      // yet.
      const openedMap = await StreamWriter.open({ stream: mapOf(name), owner, takeOver: true }, parts);
      map = openedMap.writer;
      await log.renew();
      const root = await findRoot(parts.reader, openedMap.extents);
      if (root.disk.isSnapshot) throw new RpcError('INVALID', `'${name}' is a snapshot; try again`);
      const disk = await recoverDisk(parts.reader, root, opened.extents);
      const extents = openedMap.extents.map(({ extent }) => extent);
      const store = MapStore.of({ parts, name, owner }, disk.map, { writer: map, extents }, root);
      const found = new StreamDisk(parts, root.disk, disk, { log, store });
      // Records that were replayed now need not be replayed again. Without enough nodes this waits, and reads continue.
      found.#maintain();
      return found;
    } catch (error) {
      await map?.close();
      await log.close();
      throw error;
    }
  }

  /** Reads a snapshot, which nobody owns. Rejects with MISSING. @internal */
  static async openSnapshot(parts: DiskParts, name: string): Promise<StreamDisk> {
    const { manager, timing } = parts;
    const extentsOf = async (stream: string) => (await manager.call('locate', { stream }, timing.callMs)).extents;
    const root = await findRoot(parts.reader, await extentsOf(mapOf(name)));
    return new StreamDisk(parts, root.disk, await recoverDisk(parts.reader, root, await extentsOf(logOf(name))));
  }

  get sizeBytes(): number {
    return this.metadata.sizeBytes;
  }

  get readOnly(): boolean {
    return this.#ownership === undefined;
  }

  get identity(): DiskIdentity {
    const { uuid, name } = this.metadata;
    return { uuid, generation: this.#ownership?.log.epoch ?? 1, name };
  }

  /** All acknowledged data is durable, so the write verifier is constant. */
  get writeVerifier(): bigint {
    return BigInt(`0x${this.metadata.uuid.replaceAll('-', '').slice(0, 16)}`);
  }

  /** Since it was opened. */
  get counters(): StreamDiskCounters {
    const { freed = 0, moved = 0 } = this.#ownership?.cleaner.counters ?? {};
    const { liveBlocks, memoryBytes } = this.#map;
    return { checkpoints: this.#ownership?.store.checkpoints ?? 0, freed, moved, liveBlocks, mapBytes: memoryBytes };
  }

  /** Why it takes no more requests: another owner has taken it over, or may have. Undefined: it takes requests. */
  get failure(): Error | undefined {
    return this.#ownership?.log.failure;
  }

  get notOwner(): NotOwnerError | undefined {
    if (this.#isClosed || this.#ownership === undefined || this.#ownership.log.isHeld) return undefined;
    return this.#lost(this.failure);
  }

  /** Resolves when it has another owner, or is closed; never for a snapshot. @internal */
  get ended(): Promise<void> {
    return this.#ownership?.log.ended ?? new Promise(() => {});
  }

  /**
   * Tells the manager that this disk is served at `HOST:PORT`, as long as it is owned here. A snapshot, which nobody
   * owns, has no such place. @internal
   */
  async announce(address: string): Promise<void> {
    await this.#ownership?.log.announce(address);
  }

  #check(offset: number, length: number, errno: 'EINVAL' | 'ENOSPC', ...memory: readonly [Uint8Array?]): void {
    this.#checkOpen();
    checkRange(this, offset, length, errno, ...memory);
    const { failure } = this;
    if (failure !== undefined) throw this.#lost(failure);
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new BlockDeviceError('ESHUTDOWN', `the disk '${this.metadata.name}' is closed`);
  }

  /**
   * Undefined while the lease is valid. Otherwise another owner may have the disk, and requests wait until that is
   * known.
   */
  #untilOwned(): Promise<void> | undefined {
    const log = this.#ownership?.log;
    return log === undefined || log.isHeld ? undefined : this.#waitForLease(log);
  }

  async #waitForLease(log: StreamWriter): Promise<void> {
    while (!log.isHeld) {
      await Promise.race([log.whenCertain(), this.#closing]);
      this.#checkOpen();
      if (log.failure !== undefined) throw this.#lost(log.failure);
    }
  }

  #lost(cause: Error | undefined): NotOwnerError {
    const why = cause === undefined ? 'its lease has ended, and another owner may have it' : cause.message;
    return new NotOwnerError(`the disk '${this.metadata.name}' now has another owner: ${why}`, { cause });
  }

  #owned(): Ownership {
    if (this.#ownership !== undefined) return this.#ownership;
    throw new BlockDeviceError('EPERM', `'${this.metadata.name}' is a snapshot, and never changes`);
  }

  #track<T>(work: Promise<T>): Promise<T> {
    this.#underWay.add(work);
    const done = () => void this.#underWay.delete(work);
    work.then(done, done);
    return work;
  }

  async read(offset: number, length: number, into: Uint8Array): Promise<void> {
    this.#check(offset, length, 'EINVAL', into);
    const owned = this.#untilOwned();
    if (owned !== undefined) await owned;
    const first = Math.floor(offset / DISK_BLOCK_BYTES);
    const count = Math.ceil((offset + length) / DISK_BLOCK_BYTES) - first;
    if (isWholeBlocks(offset, length)) return this.#track(this.#blocks.read(first, count, into, undefined));
    const blocks = Buffer.allocUnsafe(count * DISK_BLOCK_BYTES);
    await this.#track(this.#blocks.read(first, count, blocks, undefined));
    into.set(blocks.subarray(offset - first * DISK_BLOCK_BYTES, offset - first * DISK_BLOCK_BYTES + length));
  }

  async readChecked(offset: number, length: number, into: Uint8Array): Promise<Uint32Array> {
    this.#check(offset, length, 'EINVAL', into);
    if (!isWholeBlocks(offset, length))
      throw new BlockDeviceError('EINVAL', `${length} bytes at ${offset} are not whole blocks of ${DISK_BLOCK_BYTES}`);
    const owned = this.#untilOwned();
    if (owned !== undefined) await owned;
    const crcs = new Uint32Array(length / DISK_BLOCK_BYTES);
    await this.#track(this.#blocks.read(offset / DISK_BLOCK_BYTES, crcs.length, into, crcs));
    return crcs;
  }

  async write(offset: number, data: Uint8Array, options?: WriteOptions): Promise<void> {
    this.#check(offset, data?.length, 'ENOSPC', data);
    const crcs = options?.crcs;
    this.#owned();
    const owned = this.#untilOwned();
    if (owned !== undefined) await owned;
    if (data.length === 0) return;
    const first = Math.floor(offset / DISK_BLOCK_BYTES);
    const end = Math.ceil((offset + data.length) / DISK_BLOCK_BYTES);
    await this.#track(
      isWholeBlocks(offset, data.length)
        ? this.#lock.run(first, end, false, () => this.#writeBlocks(first, data, crcs))
        : this.#lock.run(first, end, true, () => this.#writeBytes(offset, data)),
    );
  }

  async #writeBytes(offset: number, data: Uint8Array): Promise<void> {
    const first = Math.floor(offset / DISK_BLOCK_BYTES);
    const last = Math.floor((offset + data.length - 1) / DISK_BLOCK_BYTES);
    const blocks = Buffer.alloc((last - first + 1) * DISK_BLOCK_BYTES);
    await this.#blocks.read(first, 1, blocks, undefined);
    if (last > first) await this.#blocks.read(last, 1, blocks.subarray((last - first) * DISK_BLOCK_BYTES), undefined);
    blocks.set(data, offset - first * DISK_BLOCK_BYTES);
    await this.#writeBlocks(first, blocks, undefined);
  }

  async #writeBlocks(first: number, data: Uint8Array, crcs: Uint32Array | undefined): Promise<void> {
    await this.#room();
    const total = data.length / DISK_BLOCK_BYTES;
    const appends: Promise<void>[] = [];
    for (let at = 0; at < total; at += RECORD_BLOCKS_MAX) {
      const count = Math.min(RECORD_BLOCKS_MAX, total - at);
      const bytes = data.subarray(at * DISK_BLOCK_BYTES, (at + count) * DISK_BLOCK_BYTES);
      const record = { kind: 'write', block: first + at, count } as const;
      appends.push(this.#append(record, [bytes], crcs?.subarray(at, at + count)));
    }
    await allOf(appends);
  }

  async #append(record: LogRecord, blocks: readonly Uint8Array[], crcs?: Uint32Array): Promise<void> {
    const { log } = this.#owned();
    const encoded = encodeLogRecord(record, blocks, crcs);
    try {
      await this.applied(record, encoded.data.length, log.append(encoded.data, encoded.crcs));
    } catch (error) {
      throw codeOf(error) === 'FENCED' || error === log.failure ? this.#lost(error as Error) : error;
    }
  }

  /** Tells the map of a record when it is durable: acknowledgements come in the order of the log. @internal */
  async applied(record: LogRecord, bytes: number, durable: Promise<Location>): Promise<void> {
    const at = await durable;
    const before = this.#map.liveBlocks;
    applyLogRecord(this.#map, record, at);
    const stored = recordBytes(bytes);
    this.#position = { extent: at.extent, offset: at.offset + stored };
    this.#logBytes += stored;
    if (record.kind === 'clear') this.#clearedBytes += (before - this.#map.liveBlocks) * DISK_BLOCK_BYTES;
    if (this.#isMaintenanceDue) this.#maintain();
  }

  /** Every write was durable when it was acknowledged. */
  async flush(): Promise<void> {
    this.#check(0, 0, 'EINVAL');
    await this.#untilOwned();
  }

  /** Whole blocks read as zeros afterwards, and their space is released; parts of blocks do not change. */
  async trim(offset: number, length: number): Promise<void> {
    this.#check(offset, length, 'EINVAL');
    this.#owned();
    await this.#untilOwned();
    const first = Math.ceil(offset / DISK_BLOCK_BYTES);
    await this.#track(this.#clear(first, this.#wholeBlocksTo(offset + length) - first));
  }

  /** The last block of the disk is whole without what is past its end. */
  #wholeBlocksTo(end: number): number {
    return end === this.sizeBytes ? this.#map.blocks : Math.floor(end / DISK_BLOCK_BYTES);
  }

  /**
   * As {@link trim}, and parts of blocks are written. `noHole` reserves nothing: in a log each write takes new space.
   */
  async writeZeroes(offset: number, length: number): Promise<void> {
    this.#check(offset, length, 'ENOSPC');
    this.#owned();
    await this.#untilOwned();
    const first = Math.ceil(offset / DISK_BLOCK_BYTES);
    const end = this.#wholeBlocksTo(offset + length);
    if (end <= first) return this.write(offset, Buffer.alloc(length));
    const head = first * DISK_BLOCK_BYTES - offset;
    const tail = Math.max(0, offset + length - end * DISK_BLOCK_BYTES);
    await this.#track(
      allOf([
        head === 0 ? undefined : this.write(offset, Buffer.alloc(head)),
        this.#clear(first, end - first),
        tail === 0 ? undefined : this.write(end * DISK_BLOCK_BYTES, Buffer.alloc(tail)),
      ]),
    );
  }

  async #clear(first: number, count: number): Promise<void> {
    if (count <= 0) return;
    await this.#lock.run(first, first + count, false, () => this.#append({ kind: 'clear', block: first, count }, []));
  }

  async #move(blocks: readonly MovedBlock[]): Promise<void> {
    // What has been overwritten while the others were read need not be moved.
    const wanted = blocks.filter(({ block, from }) => this.#map.isAt(block, from));
    if (wanted.length === 0) return;
    await this.#append(
      { kind: 'move', moves: wanted.map(({ block, from }) => ({ block, from })) },
      wanted.map(({ data }) => data),
    );
  }

  async blockStatus(offset: number, length: number): Promise<readonly BlockExtent[]> {
    this.#check(offset, length, 'EINVAL');
    await this.#untilOwned();
    return this.#blocks.status(offset, length);
  }

  /** Bytes of log after which a checkpoint is worth what it writes. */
  get #checkpointBytes(): number {
    const dirty = this.#map.dirtyPages * PAGE_BYTES * LOG_PER_CHECKPOINT;
    return Math.max(this.#owned().log.extentBytes, Math.min(LOG_BYTES_MAX, dirty));
  }

  /** What was cleared counts as well as growth: without a checkpoint its space would not come back without writes. */
  get #isMaintenanceDue(): boolean {
    return this.#logBytes + this.#clearedBytes >= this.#checkpointBytes;
  }

  async #room(): Promise<void> {
    if (this.#maintenance !== undefined && this.#logBytes > LOG_AHEAD * this.#checkpointBytes) await this.#maintenance;
  }

  #maintain(): void {
    if (this.#maintenance !== undefined || this.#isClosed) return;
    this.#beginMaintenance().catch(() => {});
  }

  /** One at a time: a root must not come before the pages that another checkpoint has taken upon itself. */
  #beginMaintenance(): Promise<void> {
    const work = this.#checkpointAndClean();
    const done = () => {
      this.#maintenance = undefined;
    };
    this.#maintenance = work.then(() => {
      done();
      if (this.#clearedBytes > 0 && this.#isMaintenanceDue) this.#maintain();
    }, done);
    return work;
  }

  async #checkpointAndClean(): Promise<void> {
    await this.#checkpoint();
    await this.#owned().cleaner.clean();
  }

  async #checkpoint(): Promise<void> {
    const { log, store } = this.#owned();
    this.#logBytes = 0;
    this.#clearedBytes = 0;
    await store.checkpoint(this.metadata, this.#position, () => log.renew());
  }

  /**
   * Writes a checkpoint now, and cleans until little enough of the log is garbage. Rejects with EIO if that is not
   * possible.
   */
  async compact(): Promise<void> {
    this.#check(0, 0, 'EINVAL');
    await this.#untilOwned();
    while (this.#maintenance !== undefined) await this.#maintenance;
    try {
      await this.#beginMaintenance();
    } catch (error) {
      throw new BlockDeviceError('EIO', `cannot clean '${this.metadata.name}': ${(error as Error).message}`, {
        cause: error,
      });
    }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#onClose();
    this.#ownership?.log.endWithLease();
    this.#ownership?.store.endWithLease();
    await Promise.allSettled(this.#underWay);
    while (this.#maintenance !== undefined) await this.#maintenance;
    if (this.#ownership === undefined) return;
    const { log, store } = this.#ownership;
    if (log.isHeld) await this.#checkpoint().catch(() => {});
    await store.close();
    await log.close();
  }

  /** Same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function leaseNotice(name: string, why: Error | undefined): string {
  if (why === undefined) return `the lease of the disk '${name}' is valid again: requests continue`;
  return `the lease of the disk '${name}' has ended, because no manager renewed it in time (${why.message}): requests wait until one does`;
}
