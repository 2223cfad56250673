/**
 * Calls in both directions over any Node stream: an sU connection (`SuDuplex`) or a TCP socket. At most `concurrency` requests are worked on
 * at a time; more wait in the stream's own buffers, so that a caller that asks too much is slowed down and nothing grows.
 */

import type { Duplex } from 'node:stream';
import PQueue from 'p-queue';
import { RoceError } from '../../core/errors.js';
import { NS_PER_MS } from '../../core/units.js';
import { nowNs } from '../../driver/system-clock.js';
import { MessageReader } from '../stream/message-reader.js';
import { encodeRpc, isIntact, RPC_BODY_BYTES_MAX, RPC_FRAMES, type RpcHeader } from '../stream/rpc-frame.js';

/** Answers a request. An error that it throws reaches the caller with its message. */
export type RpcHandler = (request: Buffer) => Promise<Uint8Array> | Uint8Array;

/** Limits and handlers of an RPC peer. All fields are optional. */
export interface RpcPeerOptions {
  /** Answers the peer's requests. Without it, every request is answered with an error. */
  readonly handler?: RpcHandler;
  /** Default 5 s. */
  readonly timeoutMs?: number;
  /** Most concurrent requests; default 64. */
  readonly concurrency?: number;
}

const TIMEOUT_MS = 5_000;
const CONCURRENCY = 64;

interface Call {
  readonly resolve: (response: Buffer) => void;
  readonly reject: (error: Error) => void;
}

/** One end of an RPC stream, which sends and answers requests. */
export class RpcPeer {
  /** Bodies with a wrong checksum. */
  crcMismatches = 0;
  readonly #stream: Duplex;
  readonly #options: RpcPeerOptions;
  readonly #work: PQueue;
  readonly #concurrency: number;
  readonly #calls = new Map<bigint, Call>();
  #nextId = 1n;
  #failure: Error | undefined;

  /** Takes over the stream, which is destroyed if the peer sends an invalid frame. */
  constructor(stream: Duplex, options: RpcPeerOptions = {}) {
    this.#stream = stream;
    this.#options = options;
    this.#concurrency = options.concurrency ?? CONCURRENCY;
    this.#work = new PQueue({ concurrency: this.#concurrency });
    const reader = new MessageReader(
      RPC_FRAMES,
      (header, body) => this.#onFrame(header, body),
      (why) => stream.destroy(new RoceError('ERR_ROCE_MISMATCH', `the peer does not speak RPC: ${why}`)),
    );
    stream.on('data', (bytes: Buffer) => reader.feed(bytes));
    stream.on('error', (error) => this.#fail(error));
    stream.on('close', () => this.#fail(new RoceError('ERR_ROCE_CLOSED', 'the stream is closed')));
  }

  /**
   * Sends a request. Rejects with ERR_ROCE_OUT_OF_RANGE for a request that is too long, ERR_ROCE_IO with the peer's message if it
   * fails there, ERR_ROCE_CONNECT without an answer in time, ERR_ROCE_CLOSED or the error that ended the stream.
   */
  call(request: Uint8Array, timeoutMs = this.#options.timeoutMs ?? TIMEOUT_MS): Promise<Buffer> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (request.length > RPC_BODY_BYTES_MAX) {
      const message = `a request of ${request.length} bytes is too long`;
      return Promise.reject(new RoceError('ERR_ROCE_OUT_OF_RANGE', message, `at most ${RPC_BODY_BYTES_MAX}`));
    }
    const id = this.#nextId++;
    return new Promise<Buffer>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#calls.delete(id);
        reject(new RoceError('ERR_ROCE_CONNECT', `no answer within ${timeoutMs} ms`));
      }, timeoutMs);
      const settled = () => clearTimeout(timer);
      this.#calls.set(id, {
        resolve: (response) => {
          settled();
          resolve(response);
        },
        reject: (error) => {
          settled();
          reject(error);
        },
      });
      this.#stream.write(encodeRpc({ kind: 'request', id, deadlineMs: timeoutMs }, request));
    });
  }

  #onFrame(header: RpcHeader, body: Buffer): void {
    const intact = isIntact(header, body);
    if (!intact) this.crcMismatches++;
    if (header.kind === 'request') {
      if (intact) this.#enqueue(header, body);
      else this.#answer('error', header.id, Buffer.from('the request was damaged in transit'));
      return;
    }
    const call = this.#calls.get(header.id);
    this.#calls.delete(header.id);
    if (!intact) call?.reject(new RoceError('ERR_ROCE_IO', 'the answer was damaged in transit'));
    else if (header.kind === 'response') call?.resolve(body);
    else call?.reject(new RoceError('ERR_ROCE_IO', body.toString()));
  }

  #enqueue({ id, deadlineMs }: RpcHeader, body: Buffer): void {
    const dueNs = nowNs() + deadlineMs * NS_PER_MS;
    // Who waits for more than it can be given at once stops being read.
    if (this.#work.size >= this.#concurrency) this.#stream.pause();
    void this.#work.add(async () => {
      this.#stream.resume();
      if (nowNs() >= dueNs) return; // Nobody waits for it any more.
      try {
        const { handler } = this.#options;
        if (handler === undefined) throw new Error('this side serves no requests');
        this.#answer('response', id, await handler(body));
      } catch (error) {
        this.#answer('error', id, Buffer.from((error as Error).message));
      }
    });
  }

  #answer(kind: 'response' | 'error', id: bigint, body: Uint8Array): void {
    if (this.#failure === undefined) this.#stream.write(encodeRpc({ kind, id, deadlineMs: 0 }, body));
  }

  #fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#work.clear();
    for (const { reject } of this.#calls.values()) reject(error);
    this.#calls.clear();
  }
}
