import { readU16, readU32 } from '../../../core/bytes.js';
import type { BlockErrno } from '../../disk/block-device.js';
import type { ByteQueue } from './byte-queue.js';
import { ALLOCATION_CONTEXT_ID } from './meta-context.js';
import type { NbdExport } from './nbd-export.js';
import type { NbdAgreement } from './negotiation.js';
import * as wire from './wire.js';

export interface NbdRequest {
  readonly type: number;
  readonly flags: number;
  /** Returned unchanged with the reply: the cookie, and the offset of an extended header. */
  readonly echo: Uint8Array;
  /** Exact up to 2^53, more than any disk has. */
  readonly offset: number;
  readonly lengthBytes: number;
  readonly payloadBytes: number;
  readonly data: Uint8Array;
  readonly contexts?: readonly number[];
  /** A part of a long WRITE, which is written when it is here: a client that sends half of a WRITE holds one part. */
  readonly part?: WritePart;
}

export interface WritePart {
  /** The same object in all parts of a WRITE. */
  readonly whole: WriteProgress;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

/** What has become of the parts of a WRITE; kept by the connection. */
export interface WriteProgress {
  readonly lengthBytes: number;
  outstanding: number;
  /** Its last part is here. */
  isAll: boolean;
  failure: Error | undefined;
}

export const PART_BYTES = 512 << 10;

const NO_DATA = new Uint8Array(0);
const STATUS_PAYLOAD_BYTES_MAX = 8 + 4 * 16;

export class RequestReader {
  readonly #isExtended: boolean;
  readonly #allocate: (bytes: number) => Uint8Array;
  readonly #mayPart: (request: NbdRequest) => boolean;
  /** The rest of a WRITE, without its next part. */
  #rest: NbdRequest | undefined;
  #header: NbdRequest | undefined;
  #data: Uint8Array | undefined;
  #filled = 0;
  #skipping = 0;

  /** `mayPart`: whether a WRITE may be executed in parts. */
  constructor(
    isExtended: boolean,
    allocate: (bytes: number) => Uint8Array = Buffer.allocUnsafe,
    mayPart: (request: NbdRequest) => boolean = () => false,
  ) {
    this.#isExtended = isExtended;
    this.#allocate = allocate;
    this.#mayPart = mayPart;
  }

  header(input: ByteQueue): NbdRequest | 'broken' | undefined {
    if (this.#header !== undefined) return this.#header;
    if (this.#rest !== undefined) return this.#nextPart(this.#rest);
    const bytes = input.take(this.#isExtended ? wire.EXTENDED_REQUEST_BYTES : wire.REQUEST_BYTES);
    if (bytes === undefined) return undefined;
    if (readU32(bytes, 0) !== (this.#isExtended ? wire.EXTENDED_REQUEST_MAGIC : wire.REQUEST_MAGIC)) return 'broken';
    const header = this.#parse(bytes);
    // proto.md: a server should hang up on an extended header that announces more than it ever takes.
    if (this.#isExtended && header.payloadBytes > wire.PAYLOAD_BYTES_MAX) return 'broken';
    const isLong = header.type === wire.CMD_WRITE && header.payloadBytes > PART_BYTES;
    if (isLong && this.#mayPart(header)) {
      const whole = { lengthBytes: header.lengthBytes, outstanding: 0, isAll: false, failure: undefined };
      return this.#nextPart({ ...header, part: { whole, isFirst: true, isLast: false } });
    }
    this.#header = header;
    if (!isKept(header)) this.#skipping = header.payloadBytes;
    return header;
  }

  #nextPart(rest: NbdRequest): NbdRequest {
    const { offset, payloadBytes } = rest;
    const bytes = Math.min(PART_BYTES, payloadBytes);
    const left = payloadBytes - bytes;
    const part = { ...rest.part!, isLast: left === 0 };
    this.#header = { ...rest, lengthBytes: bytes, payloadBytes: bytes, part };
    const next = { offset: offset + bytes, lengthBytes: left, payloadBytes: left, part: { ...part, isFirst: false } };
    this.#rest = left === 0 ? undefined : { ...rest, ...next };
    return this.#header;
  }

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
    const { type, flags, echo, offset, lengthBytes, payloadBytes, part } = header;
    return withContexts({ type, flags, echo, offset, lengthBytes, payloadBytes, data, ...(part && { part }) });
  }

  #parse(bytes: Uint8Array): NbdRequest {
    const flags = readU16(bytes, 4);
    const type = readU16(bytes, 6);
    const lengthBytes = this.#isExtended ? wire.readU64(bytes, 24) : readU32(bytes, 24);
    const carries = this.#isExtended ? (flags & wire.CMD_FLAG_PAYLOAD_LEN) !== 0 : type === wire.CMD_WRITE;
    return {
      type,
      flags,
      // A copy, so that the received piece can be collected.
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

function isKept({ type, payloadBytes }: NbdRequest): boolean {
  if (type === wire.CMD_BLOCK_STATUS) return payloadBytes <= STATUS_PAYLOAD_BYTES_MAX;
  return type === wire.CMD_WRITE && payloadBytes <= wire.PAYLOAD_BYTES_MAX;
}

function withContexts(request: NbdRequest): NbdRequest {
  const { type, flags, data } = request;
  if (type !== wire.CMD_BLOCK_STATUS || (flags & wire.CMD_FLAG_PAYLOAD_LEN) === 0) return request;
  if (data.length < 8 || data.length % 4 !== 0) return { ...request, contexts: [] };
  const contexts = Array.from({ length: data.length / 4 - 2 }, (_, i) => readU32(data, 8 + 4 * i));
  return { ...request, lengthBytes: wire.readU64(data, 0), contexts };
}

export function memoryOf({ type, lengthBytes, payloadBytes }: NbdRequest): number {
  const bytes = type === wire.CMD_READ ? lengthBytes : type === wire.CMD_WRITE ? payloadBytes : 0;
  return bytes <= wire.PAYLOAD_BYTES_MAX ? bytes : 0;
}

const ALLOWED_FLAGS: Readonly<Record<number, number>> = {
  [wire.CMD_READ]: wire.CMD_FLAG_FUA | wire.CMD_FLAG_DF,
  [wire.CMD_WRITE]: wire.CMD_FLAG_FUA,
  [wire.CMD_FLUSH]: wire.CMD_FLAG_FUA,
  [wire.CMD_TRIM]: wire.CMD_FLAG_FUA,
  [wire.CMD_CACHE]: wire.CMD_FLAG_FUA,
  [wire.CMD_WRITE_ZEROES]: wire.CMD_FLAG_FUA | wire.CMD_FLAG_NO_HOLE | wire.CMD_FLAG_FAST_ZERO,
  [wire.CMD_BLOCK_STATUS]: wire.CMD_FLAG_FUA | wire.CMD_FLAG_REQ_ONE,
};

const CARRYING: ReadonlySet<number> = new Set([wire.CMD_WRITE, wire.CMD_BLOCK_STATUS]);

const WRITING: ReadonlySet<number> = new Set([wire.CMD_WRITE, wire.CMD_TRIM, wire.CMD_WRITE_ZEROES]);

/** The order is that of the checks of other servers. */
export function refusalOf(request: NbdRequest, agreement: NbdAgreement<NbdExport>): BlockErrno | undefined {
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
  // Only negotiated contexts can be reported, and a length of 0 has no extent.
  if (type === wire.CMD_BLOCK_STATUS && (!agreement.allocationContext || lengthBytes === 0)) return 'EINVAL';
  if (request.contexts !== undefined && !isAllocationAlone(request.contexts)) return 'EINVAL';
  return undefined;
}

/** There is one context: others are unknown, more of it are too many, and none is no question. */
function isAllocationAlone(contexts: readonly number[]): boolean {
  return contexts.length === 1 && contexts[0] === ALLOCATION_CONTEXT_ID;
}
