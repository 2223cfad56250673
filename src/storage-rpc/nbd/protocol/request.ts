/** Requests of the transmission phase: read from the stream, and judged before anything is done. */

import { readU16, readU32 } from '../../../core/bytes.js';
import type { BlockErrno } from '../../disk/block-device.js';
import type { ByteQueue } from './byte-queue.js';
import type { NbdExport } from './nbd-export.js';
import type { Agreement } from './negotiation.js';
import * as wire from './wire.js';

/** A request as it came, not yet judged. */
export interface NbdRequest {
  /** `CMD_*`, or any number the client made up. */
  readonly type: number;
  /** `CMD_FLAG_*`. */
  readonly flags: number;
  /** Given back with the reply, as it came. */
  readonly cookie: Uint8Array;
  /** Exact up to 2^53, more than any disk has. */
  readonly offset: number;
  /** Of the data or the range. */
  readonly lengthBytes: number;
  /** Of a WRITE; empty if it was too long to be kept. */
  readonly data: Uint8Array;
}

const NO_DATA = new Uint8Array(0);

/** Reads requests in order, each in two steps: its header, and then, when there is room for its data, the whole. */
export class RequestReader {
  readonly #allocate: (bytes: number) => Uint8Array;
  #header: NbdRequest | undefined;
  /** The data of a WRITE of which a part is there. */
  #data: Uint8Array | undefined;
  #filled = 0;
  /** Bytes still to come of a WRITE that is too long. */
  #skipping = 0;

  /** `allocate` gives room for data that comes in several pieces, with anything in it. */
  constructor(allocate: (bytes: number) => Uint8Array = Buffer.allocUnsafe) {
    this.#allocate = allocate;
  }

  /** The next request without its data; undefined while it is not there; `bad-magic` when the stream has lost its rhythm for good. */
  header(input: ByteQueue): NbdRequest | 'bad-magic' | undefined {
    if (this.#header !== undefined) return this.#header;
    const bytes = input.take(wire.REQUEST_BYTES);
    if (bytes === undefined) return undefined;
    if (readU32(bytes, 0) !== wire.REQUEST_MAGIC) return 'bad-magic';
    this.#header = {
      type: readU16(bytes, 6),
      flags: readU16(bytes, 4),
      cookie: Uint8Array.from(bytes.subarray(8, 8 + wire.COOKIE_BYTES)), // The piece it lies in should not live as long.
      offset: wire.readU64(bytes, 16),
      lengthBytes: readU32(bytes, 24),
      data: NO_DATA,
    };
    if (isTooLong(this.#header)) this.#skipping = this.#header.lengthBytes;
    return this.#header;
  }

  /** The request of the last header with all its data; undefined while that is not there. */
  next(input: ByteQueue): NbdRequest | undefined {
    const header = this.#header!;
    if (header.type !== wire.CMD_WRITE) {
      this.#header = undefined;
      return header;
    }
    if (isTooLong(header)) {
      this.#skipping -= input.skip(this.#skipping);
      if (this.#skipping > 0) return undefined;
      this.#header = undefined;
      return header;
    }
    const data = this.#dataOf(header, input);
    if (data === undefined) return undefined;
    this.#header = undefined;
    this.#data = undefined;
    this.#filled = 0;
    return { ...header, data };
  }

  /** What has come moves to its place at once, so that a request takes its memory once. */
  #dataOf({ lengthBytes }: NbdRequest, input: ByteQueue): Uint8Array | undefined {
    if (this.#data === undefined && input.length >= lengthBytes) return input.take(lengthBytes);
    this.#data ??= this.#allocate(lengthBytes);
    this.#filled += input.moveTo(this.#data, this.#filled);
    return this.#filled === lengthBytes ? this.#data : undefined;
  }
}

/** A WRITE whose data is read past, not kept. */
function isTooLong({ type, lengthBytes }: NbdRequest): boolean {
  return type === wire.CMD_WRITE && lengthBytes > wire.PAYLOAD_BYTES_MAX;
}

/** Memory that a request needs for its data, in or out. */
export function payloadBytes({ type, lengthBytes }: NbdRequest): number {
  const carries = type === wire.CMD_READ || type === wire.CMD_WRITE;
  return carries && lengthBytes <= wire.PAYLOAD_BYTES_MAX ? lengthBytes : 0;
}

/** Flags each command may carry. */
const ALLOWED_FLAGS: Readonly<Record<number, number>> = {
  [wire.CMD_READ]: wire.CMD_FLAG_FUA | wire.CMD_FLAG_DF,
  [wire.CMD_WRITE]: wire.CMD_FLAG_FUA,
  [wire.CMD_FLUSH]: wire.CMD_FLAG_FUA,
  [wire.CMD_TRIM]: wire.CMD_FLAG_FUA,
  [wire.CMD_WRITE_ZEROES]: wire.CMD_FLAG_FUA | wire.CMD_FLAG_NO_HOLE,
  [wire.CMD_BLOCK_STATUS]: wire.CMD_FLAG_FUA | wire.CMD_FLAG_REQ_ONE,
};

const WRITING: ReadonlySet<number> = new Set([wire.CMD_WRITE, wire.CMD_TRIM, wire.CMD_WRITE_ZEROES]);

/** Why a request cannot be done at all; undefined if the disk is to be asked. The order is that of the checks of other servers. */
export function refusalOf(request: NbdRequest, agreement: Agreement<NbdExport>): BlockErrno | undefined {
  const { type, flags, offset, lengthBytes } = request;
  const { sizeBytes, blockBytes, readOnly } = agreement.export;
  const allowed = ALLOWED_FLAGS[type];
  if (allowed === undefined || (flags & ~allowed) !== 0) return 'EINVAL';
  if ((flags & wire.CMD_FLAG_DF) !== 0 && !agreement.structuredReplies) return 'EINVAL';
  if (type === wire.CMD_FLUSH) return undefined;
  if (readOnly === true && WRITING.has(type)) return 'EPERM';
  const brings = type === wire.CMD_WRITE || type === wire.CMD_WRITE_ZEROES;
  if (offset > sizeBytes || lengthBytes > sizeBytes - offset) return brings ? 'ENOSPC' : 'EINVAL';
  if (offset % blockBytes !== 0 || lengthBytes % blockBytes !== 0) return 'EINVAL';
  if ((type === wire.CMD_READ || type === wire.CMD_WRITE) && lengthBytes > wire.PAYLOAD_BYTES_MAX) return 'EINVAL';
  // What was not agreed on cannot be told, and a map of nothing has no extent to give.
  if (type === wire.CMD_BLOCK_STATUS && (!agreement.allocationContext || lengthBytes === 0)) return 'EINVAL';
  return undefined;
}
