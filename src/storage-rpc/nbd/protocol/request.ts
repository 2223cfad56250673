/** Requests of the transmission phase: read from the stream, and judged before anything is done. */

import { readU16, readU32 } from '../../../core/bytes.js';
import type { BlockErrno } from '../../disk/block-device.js';
import type { ByteQueue } from './byte-queue.js';
import { ALLOCATION_CONTEXT_ID } from './meta-context.js';
import type { NbdExport } from './nbd-export.js';
import type { Agreement } from './negotiation.js';
import * as wire from './wire.js';

/** A request as it came, not yet judged. */
export interface NbdRequest {
  /** `CMD_*`, or any number the client made up. */
  readonly type: number;
  /** `CMD_FLAG_*`. */
  readonly flags: number;
  /** Given back with the reply, as it came: the cookie, and from an extended header the offset, too. */
  readonly echo: Uint8Array;
  /** Exact up to 2^53, more than any disk has. */
  readonly offset: number;
  /** Of the data or the range; as the offset. */
  readonly lengthBytes: number;
  /** Bytes that follow the header. */
  readonly payloadBytes: number;
  /** They; empty if there were too many, or nothing could be done with them. */
  readonly data: Uint8Array;
  /** Contexts that a BLOCK_STATUS names; absent: all that were agreed on. */
  readonly contexts?: readonly number[];
}

const NO_DATA = new Uint8Array(0);
/** More contexts than anybody asks for. */
const STATUS_PAYLOAD_BYTES_MAX = 8 + 4 * 16;

/** Reads requests in order, each in two steps: its header, and then, when there is room for its data, the whole. */
export class RequestReader {
  readonly #isExtended: boolean;
  readonly #allocate: (bytes: number) => Uint8Array;
  #header: NbdRequest | undefined;
  /** The payload of which a part is there. */
  #data: Uint8Array | undefined;
  #filled = 0;
  /** Bytes still to come of a payload that is not kept. */
  #skipping = 0;

  /** `allocate` gives room for data that comes in several pieces, with anything in it. */
  constructor(isExtended: boolean, allocate: (bytes: number) => Uint8Array = Buffer.allocUnsafe) {
    this.#isExtended = isExtended;
    this.#allocate = allocate;
  }

  /** The next request without its data; undefined while it is not there; `broken` when the stream has lost its rhythm for good. */
  header(input: ByteQueue): NbdRequest | 'broken' | undefined {
    if (this.#header !== undefined) return this.#header;
    const bytes = input.take(this.#isExtended ? wire.EXTENDED_REQUEST_BYTES : wire.REQUEST_BYTES);
    if (bytes === undefined) return undefined;
    if (readU32(bytes, 0) !== (this.#isExtended ? wire.EXTENDED_REQUEST_MAGIC : wire.REQUEST_MAGIC)) return 'broken';
    const header = this.#parse(bytes);
    // proto.md: a server should hang up on an extended header that announces more than it ever takes.
    if (this.#isExtended && header.payloadBytes > wire.PAYLOAD_BYTES_MAX) return 'broken';
    this.#header = header;
    if (!isKept(header)) this.#skipping = header.payloadBytes;
    return header;
  }

  /** The request of the last header with all its data; undefined while that is not there. */
  next(input: ByteQueue): NbdRequest | undefined {
    const header = this.#header!;
    if (header.payloadBytes === 0 || !isKept(header)) {
      this.#skipping -= input.skip(this.#skipping);
      if (this.#skipping > 0) return undefined;
      this.#header = undefined;
      return withContexts(header);
    }
    const data = this.#dataOf(header, input);
    if (data === undefined) return undefined;
    this.#header = undefined;
    this.#data = undefined;
    this.#filled = 0;
    const { type, flags, echo, offset, lengthBytes, payloadBytes } = header;
    return withContexts({ type, flags, echo, offset, lengthBytes, payloadBytes, data });
  }

  #parse(bytes: Uint8Array): NbdRequest {
    const flags = readU16(bytes, 4);
    const type = readU16(bytes, 6);
    const lengthBytes = this.#isExtended ? wire.readU64(bytes, 24) : readU32(bytes, 24);
    const carries = this.#isExtended ? (flags & wire.CMD_FLAG_PAYLOAD_LEN) !== 0 : type === wire.CMD_WRITE;
    return {
      type,
      flags,
      // The piece it lies in should not live as long.
      echo: new Uint8Array(bytes.subarray(8, 8 + (this.#isExtended ? wire.EXTENDED_ECHO_BYTES : wire.COOKIE_BYTES))),
      offset: wire.readU64(bytes, 16),
      lengthBytes,
      payloadBytes: carries ? lengthBytes : 0,
      data: NO_DATA,
    };
  }

  /** What has come moves to its place at once, so that a request takes its memory once. */
  #dataOf({ payloadBytes }: NbdRequest, input: ByteQueue): Uint8Array | undefined {
    if (this.#data === undefined && input.length >= payloadBytes) return input.take(payloadBytes);
    this.#data ??= this.#allocate(payloadBytes);
    this.#filled += input.moveTo(this.#data, this.#filled);
    return this.#filled === payloadBytes ? this.#data : undefined;
  }
}

/** Whether its payload is read, and not past. */
function isKept({ type, payloadBytes }: NbdRequest): boolean {
  if (type === wire.CMD_BLOCK_STATUS) return payloadBytes <= STATUS_PAYLOAD_BYTES_MAX;
  return type === wire.CMD_WRITE && payloadBytes <= wire.PAYLOAD_BYTES_MAX;
}

/** A BLOCK_STATUS with a payload has its length there, and the contexts behind it. */
function withContexts(request: NbdRequest): NbdRequest {
  const { type, flags, data } = request;
  if (type !== wire.CMD_BLOCK_STATUS || (flags & wire.CMD_FLAG_PAYLOAD_LEN) === 0) return request;
  if (data.length < 8 || data.length % 4 !== 0) return { ...request, contexts: [] };
  const contexts = Array.from({ length: data.length / 4 - 2 }, (_, i) => readU32(data, 8 + 4 * i));
  return { ...request, lengthBytes: wire.readU64(data, 0), contexts };
}

/** Memory that a request needs for its data, in or out. */
export function memoryOf({ type, lengthBytes, payloadBytes }: NbdRequest): number {
  const bytes = type === wire.CMD_READ ? lengthBytes : type === wire.CMD_WRITE ? payloadBytes : 0;
  return bytes <= wire.PAYLOAD_BYTES_MAX ? bytes : 0;
}

/** Flags each command may carry. */
const ALLOWED_FLAGS: Readonly<Record<number, number>> = {
  [wire.CMD_READ]: wire.CMD_FLAG_FUA | wire.CMD_FLAG_DF,
  [wire.CMD_WRITE]: wire.CMD_FLAG_FUA,
  [wire.CMD_FLUSH]: wire.CMD_FLAG_FUA,
  [wire.CMD_TRIM]: wire.CMD_FLAG_FUA,
  [wire.CMD_CACHE]: wire.CMD_FLAG_FUA,
  [wire.CMD_WRITE_ZEROES]: wire.CMD_FLAG_FUA | wire.CMD_FLAG_NO_HOLE | wire.CMD_FLAG_FAST_ZERO,
  [wire.CMD_BLOCK_STATUS]: wire.CMD_FLAG_FUA | wire.CMD_FLAG_REQ_ONE,
};

/** Commands that may have a payload behind an extended header. */
const CARRYING: ReadonlySet<number> = new Set([wire.CMD_WRITE, wire.CMD_BLOCK_STATUS]);

const WRITING: ReadonlySet<number> = new Set([wire.CMD_WRITE, wire.CMD_TRIM, wire.CMD_WRITE_ZEROES]);

/** Why a request cannot be done at all; undefined if the disk is to be asked. The order is that of the checks of other servers. */
export function refusalOf(request: NbdRequest, agreement: Agreement<NbdExport>): BlockErrno | undefined {
  const { type, flags, offset, lengthBytes } = request;
  const { sizeBytes, blockBytes, readOnly } = agreement.export;
  const isExtended = agreement.extendedHeaders;
  const allowed = ALLOWED_FLAGS[type];
  const carried = isExtended && CARRYING.has(type) ? wire.CMD_FLAG_PAYLOAD_LEN : 0;
  if (allowed === undefined || (flags & ~(allowed | carried)) !== 0) return 'EINVAL';
  if ((flags & wire.CMD_FLAG_DF) !== 0 && !agreement.structuredReplies) return 'EINVAL';
  if (type === wire.CMD_WRITE && isExtended && (flags & wire.CMD_FLAG_PAYLOAD_LEN) === 0) return 'EINVAL';
  if (type === wire.CMD_FLUSH) return undefined;
  if (readOnly === true && WRITING.has(type)) return 'EPERM';
  const brings = type === wire.CMD_WRITE || type === wire.CMD_WRITE_ZEROES;
  if (offset > sizeBytes || lengthBytes > sizeBytes - offset) return brings ? 'ENOSPC' : 'EINVAL';
  if (offset % blockBytes !== 0 || lengthBytes % blockBytes !== 0) return 'EINVAL';
  if ((type === wire.CMD_READ || type === wire.CMD_WRITE) && lengthBytes > wire.PAYLOAD_BYTES_MAX) return 'EINVAL';
  // What was not agreed on cannot be told, and a map of nothing has no extent to give.
  if (type === wire.CMD_BLOCK_STATUS && (!agreement.allocationContext || lengthBytes === 0)) return 'EINVAL';
  if (request.contexts !== undefined && !isAllocationAlone(request.contexts)) return 'EINVAL';
  return undefined;
}

/** There is one context: others are unknown, more of it are too many, and none is no question. */
function isAllocationAlone(contexts: readonly number[]): boolean {
  return contexts.length === 1 && contexts[0] === ALLOCATION_CONTEXT_ID;
}
