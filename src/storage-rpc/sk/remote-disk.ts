import type { HostTransport } from '../../cm/rdma-fallback.js';
import {
  type BlockDevice,
  BlockDeviceError,
  type BlockExtent,
  checkRange,
  EXTENTS_MAX,
  type WriteOptions,
  type WriteZeroesOptions,
} from '../disk/block-device.js';
import type { DiskIdentity } from '../disk/disk-identity.js';
import type { SkIo } from './client-slots.js';
import { decodeExtents } from './extents.js';
import { SK_FUA, SK_NO_HOLE, SK_WRITE_PART_BYTES } from './request.js';
import type { ResumeResponse } from './resume.js';
import type { WriteVerifierCursor, WriteVerifierTracker } from './write-verifier-tracker.js';

/** Ranges without data are bounded only by their field; a multiple of any block size. */
const RANGE_BYTES_MAX = 1 << 30;
const REFRESH_NS = 1e9;

interface SkSubmitter {
  submit(io: SkIo): Promise<void>;
  readonly transport: HostTransport | undefined;
  readonly durability: WriteVerifierTracker;
  readonly diskBytes: number;
  askSize(timeoutNs: number): Promise<void>;
  shortenDeadline?(): void;
}

/** A disk of a storage server. */
export class RemoteDisk implements BlockDevice {
  readonly blockBytes: number;
  /** As announced by the server when the session was opened. */
  readonly identity: DiskIdentity;
  /** It cannot be written. */
  readonly readOnly: boolean;
  readonly #ioBytesMax: number;
  readonly #writePartBytes: number;
  readonly #session: SkSubmitter;
  readonly #server: ResumeResponse;
  readonly #cursor: WriteVerifierCursor;
  readonly #release: (() => Promise<void>) | undefined;
  readonly #underWay = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  /**
   * Uses one or several sessions whose server has described the disk. `release` ends them; without it they stay open.
   */
  constructor(session: SkSubmitter, server: ResumeResponse, release?: () => Promise<void>) {
    this.#server = server;
    this.#cursor = session.durability.cursor();
    this.#session = session;
    this.identity = server.disk;
    this.readOnly = server.readOnly;
    this.blockBytes = server.blockBytes;
    this.#ioBytesMax = server.ioBytesMax;
    const isWhole = SK_WRITE_PART_BYTES % server.blockBytes === 0;
    this.#writePartBytes = isWhole ? Math.min(SK_WRITE_PART_BYTES, server.ioBytesMax) : server.ioBytesMax;
    this.#release = release;
  }

  /** As last announced by the server. */
  get sizeBytes(): number {
    return this.#session.diskBytes;
  }

  /** The disk may have grown at the server; requests the size, for at most a second. */
  refresh(): Promise<void> {
    return this.#session.askSize(REFRESH_NS);
  }

  async read(offset: number, length: number, into: Uint8Array): Promise<void> {
    this.#check(offset, length, 'EINVAL', into);
    await this.#cut(length, this.#ioBytesMax, (at, bytes) => ({
      op: 'READ',
      offset: offset + at,
      length: bytes,
      into: into.subarray(at, at + bytes),
      cursor: this.#cursor,
    }));
  }

  async write(offset: number, data: Uint8Array, options?: WriteOptions): Promise<void> {
    this.#check(offset, data?.length, 'ENOSPC', data);
    this.#checkWritable();
    const fua = options?.fua === true;
    const flags = fua ? SK_FUA : 0;
    // With other requests outstanding, those overlap; parts of a durable write would each be made durable; over TCP
    // parts overlap anyway.
    const isAlone = this.#underWay.size === 0 && data.length <= this.#ioBytesMax;
    const isCut = isAlone && !fua && this.#session.transport === 'rdma';
    await this.#cut(data.length, isCut ? this.#writePartBytes : this.#ioBytesMax, (at, bytes) => ({
      op: 'WRITE',
      flags,
      offset: offset + at,
      length: bytes,
      data: data.subarray(at, at + bytes),
      cursor: this.#cursor,
    }));
  }

  async flush(): Promise<void> {
    this.#check(0, 0, 'EINVAL');
    await this.#submit({ op: 'FLUSH', offset: 0, length: 0, cursor: this.#cursor });
  }

  async trim(offset: number, length: number): Promise<void> {
    this.#check(offset, length, 'EINVAL');
    this.#checkWritable();
    await this.#cut(length, RANGE_BYTES_MAX, (at, bytes) => ({
      op: 'TRIM',
      offset: offset + at,
      length: bytes,
      cursor: this.#cursor,
    }));
  }

  async writeZeroes(offset: number, length: number, options?: WriteZeroesOptions): Promise<void> {
    this.#check(offset, length, 'ENOSPC');
    this.#checkWritable();
    // The protocol has no fast flag, and the cost at the server's disk is unknown.
    if (options?.fast === true) throw new BlockDeviceError('ENOTSUP', 'a remote disk cannot tell whether this is fast');
    const flags = (options?.fua === true ? SK_FUA : 0) | (options?.noHole === true ? SK_NO_HOLE : 0);
    await this.#cut(length, RANGE_BYTES_MAX, (at, bytes) => ({
      op: 'ZERO',
      flags,
      offset: offset + at,
      length: bytes,
      cursor: this.#cursor,
    }));
  }

  async blockStatus(offset: number, length: number): Promise<readonly BlockExtent[]> {
    this.#check(offset, length, 'EINVAL');
    const extents: BlockExtent[] = [];
    try {
      for (let at = offset; at < offset + length && extents.length < EXTENTS_MAX; ) {
        const bytes = Math.min(RANGE_BYTES_MAX, offset + length - at);
        let found: BlockExtent[] = [];
        await this.#submit({
          op: 'STATUS',
          offset: at,
          length: bytes,
          cursor: this.#cursor,
          take: (data) => {
            found = decodeExtents(data);
          },
        });
        const covered = found.reduce((sum, { lengthBytes }) => sum + lengthBytes, 0);
        if (covered === 0) throw new BlockDeviceError('EIO', 'the server sent no extents for the range');
        for (const extent of found) append(extents, extent);
        at += covered;
      }
    } catch (error) {
      if (!(error instanceof BlockDeviceError && error.errno === 'ENOTSUP')) throw error;
      return [{ lengthBytes: length, hole: false, zero: false }];
    }
    return extents;
  }

  /** The same disk for one of several clients, each of which has to be informed of lost writes. */
  view(): RemoteDisk {
    return new RemoteDisk(this.#session, this.#server);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    if (this.#release === undefined) {
      await Promise.allSettled(this.#underWay);
      return;
    }
    this.#session.shortenDeadline?.();
    await Promise.allSettled(this.#underWay);
    // A server that is gone permanently cannot flush; data that it acknowledged as durable is durable.
    if (!this.readOnly) {
      await this.#session.submit({ op: 'FLUSH', offset: 0, length: 0, cursor: this.#cursor }).catch(() => {});
    }
    await this.#release();
  }

  async #cut(length: number, pieceBytesMax: number, ioOf: (at: number, bytes: number) => SkIo): Promise<void> {
    if (length <= pieceBytesMax) return this.#submit(ioOf(0, length));
    const pieces: Promise<void>[] = [];
    for (let at = 0; at < length; at += pieceBytesMax) {
      pieces.push(this.#submit(ioOf(at, Math.min(pieceBytesMax, length - at))));
    }
    // The caller's memory is free when all pieces are done, even if one failed.
    const outcomes = await Promise.allSettled(pieces);
    const failed = outcomes.find(({ status }) => status === 'rejected');
    if (failed !== undefined) throw (failed as PromiseRejectedResult).reason;
  }

  #submit(io: SkIo): Promise<void> {
    const done = this.#session.submit(io);
    this.#underWay.add(done);
    const forget = () => this.#underWay.delete(done);
    done.then(forget, forget);
    return done;
  }

  #checkWritable(): void {
    if (this.readOnly) throw new BlockDeviceError('EPERM', 'the disk can only be read');
  }

  #check(offset: number, length: number, errno: 'EINVAL' | 'ENOSPC', ...memory: readonly [Uint8Array?]): void {
    if (this.#closing !== undefined) throw new BlockDeviceError('ESHUTDOWN', 'the disk is closed');
    checkRange(this, offset, length, errno, ...memory);
  }
}

function append(extents: BlockExtent[], { lengthBytes, hole, zero }: BlockExtent): void {
  const last = extents.at(-1);
  if (last !== undefined && last.hole === hole && last.zero === zero) {
    extents[extents.length - 1] = { ...last, lengthBytes: last.lengthBytes + lengthBytes };
  } else extents.push({ lengthBytes, hole, zero });
}
