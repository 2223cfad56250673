/**
 * An NBD client that does only what a test tells it to, right or wrong. Its encoding is written from the protocol's text, not with the
 * code under test.
 */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';

export const OPT = {
  EXPORT_NAME: 1,
  ABORT: 2,
  LIST: 3,
  STARTTLS: 5,
  INFO: 6,
  GO: 7,
  STRUCTURED: 8,
  LIST_META: 9,
  SET_META: 10,
  EXTENDED: 11,
};
export const CMD = { READ: 0, WRITE: 1, DISC: 2, FLUSH: 3, TRIM: 4, CACHE: 5, WRITE_ZEROES: 6, BLOCK_STATUS: 7 };

export function u16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}

export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

export function u64(value: bigint | number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}

export function text(value: string): Buffer {
  return Buffer.concat([u32(Buffer.byteLength(value)), Buffer.from(value)]);
}

export function option(code: number, data: Uint8Array = Buffer.alloc(0)): Buffer {
  return Buffer.concat([Buffer.from('IHAVEOPT'), u32(code), u32(data.length), data]);
}

export function goData(name: string, ...infos: number[]): Buffer {
  return Buffer.concat([text(name), u16(infos.length), ...infos.map(u16)]);
}

export function metaData(name: string, ...queries: string[]): Buffer {
  return Buffer.concat([text(name), u32(queries.length), ...queries.map(text)]);
}

export function request(
  type: number,
  offset: bigint | number,
  length: number,
  { flags = 0, cookie = 7n, data = Buffer.alloc(0) }: { flags?: number; cookie?: bigint; data?: Uint8Array } = {},
): Buffer {
  return Buffer.concat([u32(0x25609513), u16(flags), u16(type), u64(cookie), u64(offset), u32(length), data]);
}

/** A request with an extended header; of its length bytes `data` follow if it is given. */
export function extendedRequest(
  type: number,
  offset: bigint | number,
  length: bigint | number,
  { flags = 0, cookie = 7n, data }: { flags?: number; cookie?: bigint; data?: Uint8Array } = {},
): Buffer {
  const carries = data === undefined ? 0 : 32;
  const header = [u32(0x21e41c71), u16(flags | carries), u16(type), u64(cookie), u64(offset), u64(length)];
  return Buffer.concat([...header, data ?? Buffer.alloc(0)]);
}

export interface Reply {
  readonly kind: 'simple' | 'chunk' | 'extended';
  readonly errno: number;
  readonly cookie: bigint;
  /** Chunk type; 0 for simple replies. */
  readonly type: number;
  readonly data: Buffer;
  /** Of extended replies. */
  readonly offset?: bigint;
}

export class RawClient {
  /** After {@link upgrade} the one that encrypts. */
  socket: Socket;
  #received = Buffer.alloc(0);
  #ended = false;
  /** Wakes who waits for bytes. */
  #wake: () => void = () => {};

  private constructor(socket: Socket) {
    this.socket = socket;
    this.#hear(socket);
  }

  #hear(socket: Socket): void {
    socket.on('data', (bytes: Buffer) => {
      this.#received = Buffer.concat([this.#received, bytes]);
      this.#wake();
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#ended = true;
      this.#wake();
    });
  }

  /** Connects and has read the greeting; with `flags`, answered it. */
  static async connect(path: string, flags = 3): Promise<RawClient> {
    const client = new RawClient(connect({ path }));
    const greeting = await client.take(18);
    if (greeting.toString('latin1', 0, 16) !== 'NBDMAGICIHAVEOPT') throw new Error('no greeting');
    client.send(u32(flags));
    return client;
  }

  /** In transmission, with structured replies and the allocation context if asked for. */
  static async inTransmission(path: string, { structured = true, extended = false } = {}): Promise<RawClient> {
    const client = await RawClient.connect(path);
    if (structured) {
      const form = extended ? OPT.EXTENDED : OPT.STRUCTURED;
      client.send(option(form), option(OPT.SET_META, metaData('disk0', 'base:allocation')));
      await client.optionReplies(form);
      await client.optionReplies(OPT.SET_META);
    }
    client.send(option(OPT.GO, goData('disk0')));
    await client.optionReplies(OPT.GO);
    return client;
  }

  /** STARTTLS, then TLS by node:tls. Rejects when the server does not like it. */
  async upgrade(options: ConnectionOptions): Promise<void> {
    this.send(option(OPT.STARTTLS));
    const [{ type }] = await this.optionReplies(OPT.STARTTLS);
    if (type !== 1) throw new Error(`STARTTLS is answered with ${type.toString(16)}`);
    const plain = this.socket.removeAllListeners('data');
    const secure = connectTls({ ...options, socket: plain });
    await once(secure, 'secureConnect');
    this.socket = secure;
    this.#hear(secure);
  }

  send(...bytes: Uint8Array[]): void {
    this.socket.write(Buffer.concat(bytes));
  }

  async take(count: number): Promise<Buffer> {
    while (this.#received.length < count) {
      if (this.#ended) throw new Error(`hung up with ${this.#received.length} of ${count} bytes`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const bytes = this.#received.subarray(0, count);
    this.#received = this.#received.subarray(count);
    return bytes;
  }

  /** Replies to an option, up to its ACK or error. */
  async optionReplies(code: number): Promise<Array<{ type: number; data: Buffer }>> {
    const replies: Array<{ type: number; data: Buffer }> = [];
    for (;;) {
      const header = await this.take(20);
      if (header.readBigUInt64BE() !== 0x0003e889045565a9n || header.readUInt32BE(8) !== code) {
        throw new Error(`no reply to option ${code}: ${header.toString('hex')}`);
      }
      const type = header.readUInt32BE(12);
      replies.push({ type, data: await this.take(header.readUInt32BE(16)) });
      if (type === 1 || type >= 2 ** 31) return replies;
    }
  }

  /** A structured reply to a READ from offset 0, which may have several chunks. */
  async wholeRead(lengthBytes: number): Promise<{ errno: number; cookie: bigint; data: Buffer }> {
    const data = Buffer.alloc(lengthBytes);
    for (;;) {
      const isDone = (await this.peek(6)).readUInt16BE(4) === 1;
      const { type, errno, cookie, data: chunk } = await this.reply();
      if (type === 1) chunk.copy(data, Number(chunk.readBigUInt64BE()), 8);
      if (isDone) return { errno, cookie, data };
    }
  }

  async peek(count: number): Promise<Buffer> {
    const bytes = await this.take(count);
    this.#received = Buffer.concat([bytes, this.#received]);
    return bytes;
  }

  /** The next reply; `dataBytes` follow a simple one without error. */
  async reply(dataBytes = 0): Promise<Reply> {
    const magic = (await this.take(4)).readUInt32BE();
    if (magic === 0x67446698) {
      const rest = await this.take(12);
      const errno = rest.readUInt32BE(0);
      const data = errno === 0 ? await this.take(dataBytes) : Buffer.alloc(0);
      return { kind: 'simple', errno, cookie: rest.readBigUInt64BE(4), type: 0, data };
    }
    if (magic === 0x6e8a278c) {
      const rest = await this.take(28);
      const type = rest.readUInt16BE(2);
      const data = await this.take(Number(rest.readBigUInt64BE(20)));
      const errno = type >= 0x8000 ? data.readUInt32BE(0) : 0;
      const offset = rest.readBigUInt64BE(12);
      return { kind: 'extended', errno, cookie: rest.readBigUInt64BE(4), type, data, offset };
    }
    if (magic !== 0x668e33ef) throw new Error(`no reply: ${magic.toString(16)}`);
    const rest = await this.take(16);
    const type = rest.readUInt16BE(2);
    const data = await this.take(rest.readUInt32BE(12));
    const errno = type >= 0x8000 ? data.readUInt32BE(0) : 0;
    return { kind: 'chunk', errno, cookie: rest.readBigUInt64BE(4), type, data };
  }

  /** Resolves when the server has hung up. */
  async hungUp(): Promise<void> {
    if (!this.#ended) await once(this.socket, 'close');
  }
}
