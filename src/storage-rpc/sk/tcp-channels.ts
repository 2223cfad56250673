/** Both ends of an sK connection over TCP, with all data inline: there is no memory to register, fence or withdraw. */

import type { Clock } from '../../core/clock.js';
import { RoceError } from '../../core/errors.js';
import type { FairClient, FairQueue } from '../../core/fair-queue.js';
import { NO_REMOTE_BUFFER } from '../link/remote-buffer-descriptor.js';
import type { ByteStream } from '../stream/byte-stream.js';
import { type MessageFormat, MessageReader } from '../stream/message-reader.js';
import type { DataBuffer, SkCall, SkClientChannel, SkIncoming, SkReply, SkServerChannel } from './channel.js';
import { SK_RECEIVES } from './rdma-parts.js';
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
export interface TcpServerShare {
  readonly memory: FairQueue;
  readonly clock: Clock;
}

/** Bytes of requests and of answers not yet sent that a server holds of one connection before it stops reading. */
const UNANSWERED_BYTES_MAX = 16 << 20;
/** A client has one request in each slot, and may have a reply before the server learns that it has left. */
const UNSENT_MAX = 2 * SK_RECEIVES;

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

export class TcpClientChannel implements SkClientChannel {
  readonly transport = 'tcp';
  onReply: (reply: SkReply) => void = () => {};
  onFailure: (error: Error) => void = () => {};
  readonly #stream: ByteStream;
  #ended = false;

  constructor(stream: ByteStream) {
    this.#stream = stream;
    const reader = new MessageReader(RESPONSES, {
      onMessage: (response, body) => {
        const listBytes = responseListBytes(response);
        if (!this.#ended) this.onReply({ response, list: body.subarray(0, listBytes), data: body.subarray(listBytes) });
      },
      onMalformed: (why) => this.#fail(malformed('response', why)),
    });
    stream.onData = (bytes) => reader.feed(bytes);
    stream.onClose = (error) => this.#fail(error);
  }

  send({ request, data, checks }: SkCall): void {
    if (this.#ended) return;
    const header = Buffer.allocUnsafe(REQUEST_BYTES);
    const flags = request.op === 'WRITE' && request.length > 0 ? request.flags | SK_INLINE : request.flags;
    writeRequest(header, request, NO_REMOTE_BUFFER, checks.dataCrc, flags);
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

export class TcpServerChannel implements SkServerChannel {
  readonly transport = 'tcp';
  onRequest: (incoming: SkIncoming) => void = () => {};
  onFailure: (error: Error) => void = () => {};
  readonly #stream: ByteStream;
  readonly #memory: FairClient;
  readonly #clock: Clock;
  readonly #unsent = new Set<() => void>();
  #movedNs: number;
  #heldBytes = 0;
  #isWaiting = false;
  #comingBytes = 0;
  #isPaused = false;
  #ended = false;

  constructor(stream: ByteStream, { memory, clock }: TcpServerShare) {
    this.#stream = stream;
    this.#clock = clock;
    this.#movedNs = clock.nowNs();
    this.#memory = memory.join({
      stuckSinceNs: () => (this.#unsent.size > 0 || this.#comingBytes > 0 ? this.#movedNs : Number.POSITIVE_INFINITY),
      onStuck: () => this.#fail(new RoceError('ERR_ROCE_LIMIT', 'the client keeps memory that others wait for')),
    });
    const reader = new MessageReader(REQUESTS, {
      onMessage: (request, body) => this.#onMessage(request, body),
      onMalformed: (why) => this.#fail(malformed('request', why)),
      onBody: (bytes, go) => this.#onBody(bytes, go),
    });
    stream.onData = (bytes) => {
      this.#movedNs = clock.nowNs();
      reader.feed(bytes);
    };
    stream.onClose = (error) => this.#fail(error);
  }

  buffer(bytes: number): DataBuffer | Promise<DataBuffer> {
    const granted = this.#memory.take(bytes);
    return granted === undefined ? this.#newBuffer(bytes) : granted.then(() => this.#newBuffer(bytes));
  }

  #newBuffer(bytes: number): DataBuffer {
    let held = true;
    const release = () => {
      if (held) this.#memory.give(bytes);
      held = false;
    };
    return { bytes: Buffer.allocUnsafe(bytes), release };
  }

  async pull(): Promise<void> {
    throw malformed('request', 'bad_field');
  }

  move(): void {}

  reply(_: SkRequest, response: SkResponse, list: Uint8Array, data: DataBuffer | undefined): Promise<void> {
    if (this.#unsent.size === UNSENT_MAX) {
      this.#fail(new RoceError('ERR_ROCE_LIMIT', 'the client has more requests outstanding than slots'));
    }
    if (this.#ended) return Promise.resolve();
    const flags = data === undefined ? response.flags : response.flags | SK_INLINE;
    const header = encodeMessage(response, list, undefined, flags);
    const bytes = header.length + (data?.bytes.length ?? 0);
    return new Promise((resolve) => {
      const done = () => {
        this.#movedNs = this.#clock.nowNs();
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

  /** Memory for a request is taken before it is read. */
  #onBody(bytes: number, go: () => void): void {
    if (this.#ended) return;
    this.#isWaiting = true;
    this.#memory.ask(bytes, () => {
      this.#comingBytes = bytes;
      this.#isWaiting = false;
      go();
      this.#updateFlow();
    });
    this.#updateFlow();
  }

  #onMessage(request: SkRequest, body: Buffer): void {
    if (this.#ended) return;
    this.#comingBytes = 0;
    const listBytes = requestListBytes(request);
    const isWhole = request.op !== 'WRITE' || requestInlineBytes(request) === request.length;
    if (!isWhole) {
      this.#memory.give(body.length);
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
        if (!held) return;
        held = false;
        this.#memory.give(body.length);
        this.#hold(-body.length);
      },
    });
  }

  #hold(bytes: number): void {
    this.#heldBytes += bytes;
    this.#updateFlow();
  }

  #updateFlow(): void {
    const isPaused = this.#isWaiting || this.#heldBytes > UNANSWERED_BYTES_MAX;
    if (this.#ended || isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    if (isPaused) this.#stream.pause();
    else this.#stream.resume();
  }

  #fail(error: Error): void {
    if (this.#ended) return;
    this.#end();
    this.onFailure(error);
  }

  #end(): void {
    this.#ended = true;
    for (const done of [...this.#unsent]) done();
    this.#memory.leave();
    this.#memory.give(this.#comingBytes);
    this.#comingBytes = 0;
  }
}

function malformed(what: string, why: string): RoceError {
  return new RoceError('ERR_ROCE_MISMATCH', `a ${what} is malformed: ${why}`);
}
