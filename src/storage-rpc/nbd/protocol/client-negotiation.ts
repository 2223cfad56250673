import { readU16, readU32, writeU16, writeU32 } from '../../../core/bytes.js';
import { RoceError } from '../../../core/errors.js';
import type { ByteQueue } from './byte-queue.js';
import * as wire from './wire.js';

const GREETING_BYTES = 18;
const REPLY_BYTES_MAX = 64 * 1024;
const BLOCK_BYTES_MAX = 64 * 1024;

export interface RemoteExport {
  readonly sizeBytes: number;
  readonly flags: number;
  readonly structuredReplies: boolean;
  readonly extendedHeaders: boolean;
  readonly allocationContextId: number | undefined;
  readonly blockBytes: number;
  readonly payloadBytesMax: number;
}

interface OptionReply {
  readonly option: number;
  readonly type: number;
  readonly data: Uint8Array;
}

export class ClientNegotiation {
  readonly #exportName: string;
  readonly #send: (bytes: Uint8Array) => void;
  readonly #wantsTls: boolean;
  #option = 0;
  #header: { readonly option: number; readonly type: number; readonly length: number } | undefined;
  readonly #found: { -readonly [K in keyof RemoteExport]: RemoteExport[K] } = {
    sizeBytes: 0,
    flags: 0,
    structuredReplies: false,
    extendedHeaders: false,
    allocationContextId: undefined,
    blockBytes: 1,
    payloadBytesMax: wire.PAYLOAD_BYTES_MAX,
  };

  constructor(exportName: string, send: (bytes: Uint8Array) => void, wantsTls = false) {
    this.#exportName = exportName;
    this.#send = send;
    this.#wantsTls = wantsTls;
  }

  advance(input: ByteQueue): RemoteExport | 'starttls' | undefined {
    if (this.#option === 0 && !this.#greeted(input)) return undefined;
    for (let reply = this.#reply(input); reply !== undefined; reply = this.#reply(input)) {
      if (reply.option === wire.OPT_STARTTLS) return this.#startTls(reply, input);
      if (this.#take(reply)) return this.#found;
    }
    return undefined;
  }

  secured(): void {
    this.#ask(wire.OPT_EXTENDED_HEADERS, NO_DATA);
  }

  #startTls({ type }: OptionReply, input: ByteQueue): 'starttls' {
    if (type !== wire.REP_ACK) {
      throw new RoceError(
        'ERR_ROCE_MISMATCH',
        'the NBD server has no TLS',
        'nbd:// instead of nbds:// sends everything in the clear',
      );
    }
    // Data in the clear after the answer must not be treated as received over TLS.
    if (input.length > 0)
      throw new RoceError('ERR_ROCE_MISMATCH', 'the NBD server sent more in the clear after STARTTLS');
    return 'starttls';
  }

  #greeted(input: ByteQueue): boolean {
    const bytes = input.take(GREETING_BYTES);
    if (bytes === undefined) return false;
    const isNewstyle = wire.hasMagic(bytes, 0, wire.NBDMAGIC) && wire.hasMagic(bytes, 8, wire.IHAVEOPT);
    const serverFlags = readU16(bytes, 16);
    if (!isNewstyle || (serverFlags & wire.FLAG_FIXED_NEWSTYLE) === 0) {
      throw new RoceError('ERR_ROCE_MISMATCH', 'the peer does not speak fixed newstyle NBD');
    }
    const flags = new Uint8Array(4);
    writeU32(flags, 0, serverFlags & (wire.FLAG_FIXED_NEWSTYLE | wire.FLAG_NO_ZEROES));
    this.#send(flags);
    if (this.#wantsTls) this.#ask(wire.OPT_STARTTLS, NO_DATA);
    else this.#ask(wire.OPT_EXTENDED_HEADERS, NO_DATA);
    return true;
  }

  #reply(input: ByteQueue): OptionReply | undefined {
    if (this.#header === undefined) {
      const bytes = input.take(wire.OPTION_REPLY_HEADER_BYTES);
      if (bytes === undefined) return undefined;
      const header = { option: readU32(bytes, 8), type: readU32(bytes, 12), length: readU32(bytes, 16) };
      const isExpected = wire.hasMagic(bytes, 0, wire.OPTION_REPLY_MAGIC) && header.option === this.#option;
      if (!isExpected || header.length > REPLY_BYTES_MAX) {
        throw new RoceError('ERR_ROCE_MISMATCH', 'the NBD server sent an invalid reply to an option');
      }
      this.#header = header;
    }
    const data = input.take(this.#header.length);
    if (data === undefined) return undefined;
    const { option, type } = this.#header;
    this.#header = undefined;
    return { option, type, data };
  }

  #take({ option, type, data }: OptionReply): boolean {
    const isError = type >= wire.REP_ERR_BIT;
    if (type === wire.REP_ERR_TLS_REQD) {
      throw new RoceError('ERR_ROCE_MISMATCH', 'the NBD server insists on TLS', 'nbds:// instead of nbd://');
    }
    switch (option) {
      case wire.OPT_EXTENDED_HEADERS:
        this.#found.extendedHeaders = type === wire.REP_ACK;
        this.#found.structuredReplies = type === wire.REP_ACK;
        if (isError) this.#ask(wire.OPT_STRUCTURED_REPLY, NO_DATA);
        else this.#ask(wire.OPT_SET_META_CONTEXT, metaContextQuery(this.#exportName));
        return false;
      case wire.OPT_STRUCTURED_REPLY:
        this.#found.structuredReplies = type === wire.REP_ACK;
        if (isError) this.#go();
        else this.#ask(wire.OPT_SET_META_CONTEXT, metaContextQuery(this.#exportName));
        return false;
      case wire.OPT_SET_META_CONTEXT:
        if (type === wire.REP_META_CONTEXT && data.length >= 4) this.#found.allocationContextId = readU32(data, 0);
        else this.#go();
        return false;
      default:
        if (isError) throw refusal(type, this.#exportName, data);
        if (type === wire.REP_INFO) this.#info(data);
        return type === wire.REP_ACK;
    }
  }

  #go(): void {
    const name = encoder.encode(this.#exportName);
    const data = new Uint8Array(4 + name.length + 4);
    writeU32(data, 0, name.length);
    data.set(name, 4);
    writeU16(data, 4 + name.length, 1);
    writeU16(data, 6 + name.length, wire.INFO_BLOCK_SIZE);
    this.#ask(wire.OPT_GO, data);
  }

  #info(data: Uint8Array): void {
    const type = data.length >= 2 ? readU16(data, 0) : -1;
    if (type === wire.INFO_EXPORT && data.length === 12) {
      this.#found.sizeBytes = wire.readU64(data, 2);
      this.#found.flags = readU16(data, 10);
    } else if (type === wire.INFO_BLOCK_SIZE && data.length === 14) {
      const blockBytes = readU32(data, 2);
      const payloadBytesMax = Math.min(readU32(data, 10), wire.PAYLOAD_BYTES_MAX);
      // proto.md, "Block size constraints": a power of two up to 64 KiB, and the maximum is not below it.
      const isPossible = blockBytes > 0 && (blockBytes & (blockBytes - 1)) === 0 && blockBytes <= BLOCK_BYTES_MAX;
      if (!isPossible || payloadBytesMax < blockBytes) {
        const text = `the NBD server announces impossible block sizes: minimum ${blockBytes}, maximum ${payloadBytesMax}`;
        throw new RoceError('ERR_ROCE_MISMATCH', text);
      }
      this.#found.blockBytes = blockBytes;
      this.#found.payloadBytesMax = payloadBytesMax - (payloadBytesMax % blockBytes);
    }
  }

  #ask(option: number, data: Uint8Array): void {
    this.#option = option;
    const bytes = new Uint8Array(wire.OPTION_HEADER_BYTES + data.length);
    wire.writeMagic(bytes, 0, wire.IHAVEOPT);
    writeU32(bytes, 8, option);
    writeU32(bytes, 12, data.length);
    bytes.set(data, wire.OPTION_HEADER_BYTES);
    this.#send(bytes);
  }
}

const encoder = new TextEncoder();
const NO_DATA = new Uint8Array(0);

function metaContextQuery(exportName: string): Uint8Array {
  const name = encoder.encode(exportName);
  const query = encoder.encode(wire.BASE_ALLOCATION);
  const data = new Uint8Array(4 + name.length + 8 + query.length);
  writeU32(data, 0, name.length);
  data.set(name, 4);
  writeU32(data, 4 + name.length, 1);
  writeU32(data, 8 + name.length, query.length);
  data.set(query, 12 + name.length);
  return data;
}

function refusal(type: number, exportName: string, data: Uint8Array): RoceError {
  if (type === wire.REP_ERR_UNKNOWN) {
    return new RoceError('ERR_ROCE_NOT_FOUND', `the NBD server has no export '${exportName}'`);
  }
  const text = new TextDecoder().decode(data);
  const why = text === '' ? `error ${type - wire.REP_ERR_BIT}` : text;
  return new RoceError('ERR_ROCE_MISMATCH', `the NBD server refuses the export '${exportName}': ${why}`);
}
