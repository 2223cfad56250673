/**
 * The client's transmission phase: replies in any order, simple or structured. A protocol violation by the server ends
 * the session.
 */

import { readU16, readU32, writeU16, writeU32 } from '../../../core/bytes.js';
import { RoceError } from '../../../core/errors.js';
import { BLOCK_ERRNOS, BlockDeviceError, type BlockErrno, type BlockExtent } from '../../disk/block-device.js';
import type { ByteQueue } from './byte-queue.js';
import type { RemoteExport } from './client-negotiation.js';
import * as wire from './wire.js';

export interface ClientRequest {
  readonly type: number;
  readonly flags?: number | undefined;
  readonly offset: number;
  /** Bytes of data, or of the range; 0 for FLUSH and DISC. */
  readonly lengthBytes: number;
  readonly into?: Uint8Array | undefined;
}

export interface ClientOutcome {
  readonly error: BlockDeviceError | undefined;
  readonly extents: readonly BlockExtent[];
}

interface Pending extends ClientRequest {
  readonly done: (outcome: ClientOutcome) => void;
  arrivedBytes: number;
  error: BlockDeviceError | undefined;
  readonly extents: BlockExtent[];
}

interface Chunk {
  readonly pending: Pending;
  readonly cookie: number;
  readonly isDone: boolean;
  readonly type: number;
  readonly lengthBytes: number;
  place: Uint8Array | undefined;
  filledBytes: number;
}

const CHUNK_BYTES_MAX = wire.PAYLOAD_BYTES_MAX + 4096;

export class NbdClientSession {
  readonly #export: RemoteExport;
  readonly #pending = new Map<number, Pending>();
  #nextCookie = 0;
  #chunk: Chunk | undefined;

  constructor(remote: RemoteExport) {
    this.#export = remote;
  }

  submit(request: ClientRequest, done: (outcome: ClientOutcome) => void): Uint8Array {
    const cookie = this.#nextCookie;
    this.#nextCookie = (cookie + 1) >>> 0;
    this.#pending.set(cookie, { ...request, done, arrivedBytes: 0, error: undefined, extents: [] });
    return this.#header(request, cookie);
  }

  #header({ type, flags = 0, offset, lengthBytes }: ClientRequest, cookie: number): Uint8Array {
    const isExtended = this.#export.extendedHeaders;
    const carries = isExtended && type === wire.CMD_WRITE ? wire.CMD_FLAG_PAYLOAD_LEN : 0;
    const header = new Uint8Array(isExtended ? wire.EXTENDED_REQUEST_BYTES : wire.REQUEST_BYTES);
    writeU32(header, 0, isExtended ? wire.EXTENDED_REQUEST_MAGIC : wire.REQUEST_MAGIC);
    writeU16(header, 4, flags | carries);
    writeU16(header, 6, type);
    writeU32(header, 12, cookie);
    wire.writeU64(header, 16, offset);
    if (isExtended) wire.writeU64(header, 24, lengthBytes);
    else writeU32(header, 24, lengthBytes);
    return header;
  }

  receive(input: ByteQueue): void {
    while (this.#chunk === undefined ? this.#readHeader(input) : this.#readPayload(input, this.#chunk));
  }

  fail(error: BlockDeviceError): void {
    const all = [...this.#pending.values()];
    this.#pending.clear();
    for (const { done } of all) done({ error, extents: [] });
  }

  #readHeader(input: ByteQueue): boolean {
    const start = input.peek(4);
    if (start === undefined) return false;
    const isExtended = this.#export.extendedHeaders;
    switch (readU32(start, 0)) {
      case wire.SIMPLE_REPLY_MAGIC:
        if (isExtended) throw broken('it sent a simple reply although headers are extended');
        return this.#readSimple(input);
      case wire.STRUCTURED_REPLY_MAGIC:
        if (isExtended) throw broken('it sent a structured reply although headers are extended');
        return this.#readChunkHeader(input, wire.CHUNK_HEADER_BYTES);
      case wire.EXTENDED_REPLY_MAGIC:
        if (!isExtended) throw broken('it sent an extended reply without negotiation');
        return this.#readChunkHeader(input, wire.EXTENDED_CHUNK_HEADER_BYTES);
      default:
        throw broken('a reply does not begin with a magic number');
    }
  }

  #readSimple(input: ByteQueue): boolean {
    const bytes = input.take(wire.SIMPLE_REPLY_BYTES);
    if (bytes === undefined) return false;
    const errno = readU32(bytes, 4);
    const { cookie, pending } = this.#pendingOf(bytes);
    if (pending.type === wire.CMD_READ && this.#export.structuredReplies) throw broken('a READ has a simple reply');
    if (errno !== 0) pending.error = errorOf(errno, '');
    const lengthBytes = pending.type === wire.CMD_READ && errno === 0 ? pending.lengthBytes : 0;
    const place = this.#place(pending, pending.offset, lengthBytes);
    this.#chunk = {
      pending,
      cookie,
      isDone: true,
      type: wire.REPLY_TYPE_OFFSET_DATA,
      lengthBytes,
      place,
      filledBytes: 0,
    };
    return true;
  }

  #readChunkHeader(input: ByteQueue, headerBytes: number): boolean {
    const bytes = input.take(headerBytes);
    if (bytes === undefined) return false;
    const { cookie, pending } = this.#pendingOf(bytes);
    const isExtended = this.#export.extendedHeaders;
    const lengthBytes = isExtended ? wire.readU64(bytes, 24) : readU32(bytes, 16);
    if (isExtended && wire.readU64(bytes, 16) !== pending.offset)
      throw broken('a reply has the offset of another request');
    if (!this.#export.structuredReplies) throw broken('it sent a structured reply without negotiation');
    if (lengthBytes > CHUNK_BYTES_MAX) throw broken(`a chunk of ${lengthBytes} bytes`);
    const isDone = (readU16(bytes, 4) & wire.REPLY_FLAG_DONE) !== 0;
    const type = readU16(bytes, 6);
    this.#chunk = { pending, cookie, isDone, type, lengthBytes, place: undefined, filledBytes: 0 };
    return true;
  }

  #readPayload(input: ByteQueue, chunk: Chunk): boolean {
    if (chunk.type === wire.REPLY_TYPE_OFFSET_DATA) {
      if (!this.#readData(input, chunk)) return false;
    } else {
      const payload = input.take(chunk.lengthBytes);
      if (payload === undefined) return false;
      this.#takePayload(chunk, payload);
    }
    this.#chunk = undefined;
    if (!chunk.isDone) return true;
    const { pending, cookie } = chunk;
    this.#pending.delete(cookie);
    if (pending.error === undefined && pending.type === wire.CMD_READ && pending.arrivedBytes !== pending.lengthBytes) {
      throw broken(`a READ of ${pending.lengthBytes} bytes has an answer of ${pending.arrivedBytes}`);
    }
    pending.done({ error: pending.error, extents: pending.extents });
    return true;
  }

  #readData(input: ByteQueue, chunk: Chunk): boolean {
    if (chunk.place === undefined) {
      if (chunk.lengthBytes < OFFSET_BYTES) throw broken('data without an offset');
      const offset = input.take(OFFSET_BYTES);
      if (offset === undefined) return false;
      chunk.place = this.#place(chunk.pending, wire.readU64(offset, 0), chunk.lengthBytes - OFFSET_BYTES);
    }
    chunk.filledBytes += input.moveTo(chunk.place, chunk.filledBytes);
    return chunk.filledBytes === chunk.place.length;
  }

  #takePayload({ pending, type }: Chunk, payload: Uint8Array): void {
    switch (type) {
      case wire.REPLY_TYPE_NONE:
        return;
      case wire.REPLY_TYPE_OFFSET_HOLE:
        if (payload.length !== 12) throw broken('it sent a hole without its offset');
        this.#place(pending, wire.readU64(payload, 0), readU32(payload, 8)).fill(0);
        return;
      case wire.REPLY_TYPE_BLOCK_STATUS:
      case wire.REPLY_TYPE_BLOCK_STATUS_EXT:
        if ((type === wire.REPLY_TYPE_BLOCK_STATUS_EXT) !== this.#export.extendedHeaders) {
          throw broken('it sent extents in a form that was not agreed on');
        }
        this.#extents(pending, payload);
        return;
      default:
        if ((type & wire.REPLY_TYPE_ERROR_BIT) === 0 || payload.length < 6) throw broken(`a chunk of type ${type}`);
        pending.error ??= errorOf(readU32(payload, 0), textOf(payload));
    }
  }

  #place(pending: Pending, offset: number, lengthBytes: number): Uint8Array {
    if (lengthBytes === 0) return NOWHERE;
    const at = offset - pending.offset;
    if (pending.into === undefined || at < 0 || lengthBytes > pending.lengthBytes - at) {
      throw broken(`it sent data for ${lengthBytes} bytes at ${offset}, which were not requested`);
    }
    pending.arrivedBytes += lengthBytes;
    return pending.into.subarray(at, at + lengthBytes);
  }

  #extents(pending: Pending, payload: Uint8Array): void {
    const isExtended = this.#export.extendedHeaders;
    const start = isExtended ? 8 : 4;
    const bytes = isExtended ? 16 : 8;
    const count = (payload.length - start) / bytes;
    if (pending.type !== wire.CMD_BLOCK_STATUS || count < 1 || !Number.isInteger(count))
      throw broken('it sent invalid extents');
    if (isExtended && readU32(payload, 4) !== count) throw broken('it sent another number of extents than announced');
    if (readU32(payload, 0) !== this.#export.allocationContextId) return;
    if (pending.extents.length > 0) throw broken('the same extents twice');
    for (let at = start; at < payload.length; at += bytes) {
      const flags = readU32(payload, at + bytes - 4);
      pending.extents.push({
        lengthBytes: isExtended ? wire.readU64(payload, at) : readU32(payload, at),
        hole: (flags & wire.STATE_HOLE) !== 0,
        zero: (flags & wire.STATE_ZERO) !== 0,
      });
    }
  }

  #pendingOf(header: Uint8Array): { cookie: number; pending: Pending } {
    const cookie = readU32(header, 12);
    const pending = readU32(header, 8) === 0 ? this.#pending.get(cookie) : undefined;
    if (pending === undefined) throw broken('it sent a reply without a request');
    return { cookie, pending };
  }
}

const OFFSET_BYTES = 8;
const NOWHERE = new Uint8Array(0);

function broken(what: string): RoceError {
  return new RoceError('ERR_ROCE_MISMATCH', `the NBD server broke the protocol: ${what}`);
}

function textOf(payload: Uint8Array): string {
  return new TextDecoder().decode(payload.subarray(6, 6 + readU16(payload, 4)));
}

/** An unknown number is EIO. */
function errorOf(errno: number, text: string): BlockDeviceError {
  const names = Object.keys(BLOCK_ERRNOS) as BlockErrno[];
  const name = names.find((candidate) => BLOCK_ERRNOS[candidate] === errno) ?? 'EIO';
  return new BlockDeviceError(name, text === '' ? 'the NBD server refuses' : `the NBD server says: ${text}`);
}
