/**
 * Both ends of an sK connection over TCP: the same headers as over RDMA, all data inline behind them. Nobody reaches anybody's memory, so
 * there is nothing to register, fence or withdraw.
 */

import { RoceError } from '../../core/errors.js';
import { NO_PLACE } from '../link/remote-place.js';
import type { ByteStream } from '../stream/byte-stream.js';
import { type MessageFormat, MessageReader } from '../stream/message-reader.js';
import type { DataBuffer, SkCall, SkClientChannel, SkIncoming, SkReply, SkServerChannel } from './channel.js';
import {
  REQUEST_BYTES,
  readRequest,
  requestInlineBytes,
  requestListBytes,
  SK_INLINE,
  type SkRequest,
  writeRequest,
} from './request.js';
import {
  encodeMessage,
  RESPONSE_BYTES,
  readResponse,
  responseInlineBytes,
  responseListBytes,
  type SkResponse,
} from './response.js';

const EMPTY = new Uint8Array(0);
/** Bytes of requests and of answers not yet sent that a server holds of one connection before it stops reading. */
const UNANSWERED_BYTES_MAX = 16 << 20;

const RESPONSES: MessageFormat<SkResponse> = {
  headerBytes: RESPONSE_BYTES,
  read: readResponse,
  bodyBytes: (response) => responseListBytes(response) + responseInlineBytes(response),
};

const REQUESTS: MessageFormat<SkRequest> = {
  headerBytes: REQUEST_BYTES,
  read: readRequest,
  bodyBytes: (request) => requestListBytes(request) + requestInlineBytes(request),
};

/** A client's connection over TCP. */
export class TcpClientChannel implements SkClientChannel {
  readonly transport = 'tcp';
  onReply: (reply: SkReply) => void = () => {};
  onFailure: (error: Error) => void = () => {};
  readonly #stream: ByteStream;
  #ended = false;

  constructor(stream: ByteStream) {
    this.#stream = stream;
    const reader = new MessageReader(
      RESPONSES,
      (response, body) => {
        const listBytes = responseListBytes(response);
        if (!this.#ended) this.onReply({ response, list: body.subarray(0, listBytes), data: body.subarray(listBytes) });
      },
      (why) => this.#fail(malformed('response', why)),
    );
    stream.onData = (bytes) => reader.feed(bytes);
    stream.onClose = (error) => this.#fail(error);
  }

  send({ request, data, checks }: SkCall): void {
    if (this.#ended) return;
    const header = Buffer.allocUnsafe(REQUEST_BYTES);
    const flags = request.op === 'WRITE' && request.length > 0 ? request.flags | SK_INLINE : request.flags;
    writeRequest(header, { ...request, flags, descriptor: NO_PLACE, dataCrc: checks.dataCrc });
    this.#stream.write([header, checks.list, data ?? EMPTY]);
  }

  async withdraw(): Promise<void> {}

  async close(): Promise<void> {
    this.#ended = true;
    this.#stream.destroy();
  }

  #fail(error: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.onFailure(error);
  }
}

/** A server's connection over TCP. */
export class TcpServerChannel implements SkServerChannel {
  readonly transport = 'tcp';
  onRequest: (incoming: SkIncoming) => void = () => {};
  onFailure: (error: Error) => void = () => {};
  readonly #stream: ByteStream;
  /** Replies that have not been sent: told when the stream ends. */
  readonly #unsent = new Set<() => void>();
  #heldBytes = 0;
  #ended = false;

  constructor(stream: ByteStream) {
    this.#stream = stream;
    const reader = new MessageReader(
      REQUESTS,
      (request, body) => this.#onMessage(request, body),
      (why) => this.#fail(malformed('request', why)),
    );
    stream.onData = (bytes) => reader.feed(bytes);
    stream.onClose = (error) => this.#fail(error);
  }

  async buffer(bytes: number): Promise<DataBuffer> {
    return { bytes: Buffer.allocUnsafe(bytes), release: () => {} };
  }

  /** All data comes with its request. */
  async pull(): Promise<void> {
    throw malformed('request', 'bad_field');
  }

  /** All data goes with its response. */
  move(): void {}

  reply(_: SkRequest, response: SkResponse, list: Uint8Array, data: DataBuffer | undefined): Promise<void> {
    if (this.#ended) return Promise.resolve();
    const flags = data === undefined ? response.flags : response.flags | SK_INLINE;
    const header = encodeMessage({ ...response, flags }, list, undefined);
    const bytes = header.length + (data?.bytes.length ?? 0);
    return new Promise((resolve) => {
      const done = () => {
        if (this.#unsent.delete(done)) this.#hold(-bytes);
        resolve();
      };
      this.#unsent.add(done);
      this.#hold(bytes);
      this.#stream.write([header, data?.bytes ?? EMPTY], done);
    });
  }

  async close(): Promise<void> {
    this.#end();
    this.#stream.destroy();
  }

  #onMessage(request: SkRequest, body: Buffer): void {
    if (this.#ended) return;
    const listBytes = requestListBytes(request);
    const isWhole = request.op !== 'WRITE' || requestInlineBytes(request) === request.length;
    if (!isWhole) {
      this.#fail(malformed('request', 'bad_length'));
      return;
    }
    this.#hold(body.length);
    let held = true;
    this.onRequest({
      request,
      list: body.subarray(0, listBytes),
      inline: body.length > listBytes ? body.subarray(listBytes) : undefined,
      release: () => {
        if (held) this.#hold(-body.length);
        held = false;
      },
    });
  }

  #hold(bytes: number): void {
    this.#heldBytes += bytes;
    if (this.#ended) return;
    if (this.#heldBytes > UNANSWERED_BYTES_MAX) this.#stream.pause();
    else if (bytes < 0 && this.#heldBytes - bytes > UNANSWERED_BYTES_MAX) this.#stream.resume();
  }

  #fail(error: Error): void {
    if (this.#ended) return;
    this.#end();
    this.onFailure(error);
  }

  #end(): void {
    this.#ended = true;
    for (const done of [...this.#unsent]) done();
  }
}

function malformed(what: string, why: string): RoceError {
  return new RoceError('ERR_ROCE_MISMATCH', `a ${what} is malformed: ${why}`);
}
