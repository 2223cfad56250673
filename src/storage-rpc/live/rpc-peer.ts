/**
 * Calls in both directions over any Node stream: an sU connection (`SuDuplex`) or a TCP socket. Requests and answers are bytes; methods with
 * schemas and streams are those of `rocev2/rpc`, which runs over the same streams.
 *
 * At most `concurrency` requests are worked on or have answers that the peer has not fetched. More wait in the stream's own buffers, so that a
 * caller that asks too much is slowed down and nothing grows.
 */

import type { Duplex } from 'node:stream';
import PQueue from 'p-queue';
import { whenAborted } from '../../core/abort-listeners.js';
import { checkKind, checkOptions, checkWhole, type OptionNames } from '../../core/arguments.js';
import { RoceError } from '../../core/errors.js';
import { NS_PER_MS } from '../../core/units.js';
import { type CancellationState, WAIT_OPTIONS, WaitDeadline, type WaitOptions, waitFor } from '../../core/wait.js';
import { SYSTEM_CLOCK } from '../../driver/system-clock.js';
import { MessageReader } from '../stream/message-reader.js';
import {
  encodeRpc,
  isIntact,
  RPC_BODY_BYTES_MAX,
  RPC_FRAMES,
  RPC_NO_DEADLINE,
  type RpcHeader,
  type RpcKind,
} from '../stream/rpc-frame.js';

/** Second argument of a handler. */
export interface RpcRequestContext {
  /** Aborted when the caller gives up, its deadline passes or the stream ends. Nobody gets the answer then. */
  readonly signal: AbortSignal;
}

/**
 * Answers a request with at most 16 MiB. What it throws reaches the caller as ERR_ROCE_IO: the message of an Error, a text as it is, and no
 * details of anything else.
 */
export type RpcHandler = (request: Buffer, context: RpcRequestContext) => Promise<Uint8Array> | Uint8Array;

/** Limits and handlers of an RPC peer. All fields are optional. */
export interface RpcPeerOptions {
  /** Answers the peer's requests. Without it, every request is answered with an error. */
  readonly handler?: RpcHandler;
  /** How long a call waits. Default 5 s; Infinity: as long as it takes. */
  readonly timeoutMs?: number;
  /** Most concurrent requests; default 64. */
  readonly concurrency?: number;
}

const PEER_OPTIONS: OptionNames<RpcPeerOptions> = { handler: true, timeoutMs: true, concurrency: true };
const TIMEOUT_MS = 5_000;
const CONCURRENCY = 64;
/** Longest message of an error that travels, in characters. */
const MESSAGE_MAX = 1024;

interface Call {
  readonly resolve: (response: Buffer) => void;
  readonly reject: (error: Error) => void;
}

/** One end of an RPC stream, which sends and answers requests. */
export class RpcPeer {
  /** Bodies with a wrong checksum. */
  crcMismatches = 0;
  readonly #stream: Duplex;
  readonly #handler: RpcHandler | undefined;
  readonly #timeoutMs: number;
  readonly #work: PQueue;
  readonly #concurrency: number;
  readonly #calls = new Map<bigint, Call>();
  /** Requests of the peer that are not answered. */
  readonly #requests = new Map<bigint, AbortController>();
  #nextId = 1n;
  #failure: Error | undefined;

  /**
   * Takes over the stream, which is destroyed if the peer sends an invalid frame. Throws ERR_ROCE_UNKNOWN_NAME for an unknown option,
   * ERR_ROCE_OUT_OF_RANGE for a `concurrency` or a `timeoutMs` that cannot be.
   */
  constructor(stream: Duplex, options: RpcPeerOptions = {}) {
    checkOptions('RpcPeer', options, PEER_OPTIONS);
    const { handler, timeoutMs = TIMEOUT_MS, concurrency = CONCURRENCY } = options;
    if (handler !== undefined) checkKind('handler', handler, typeof handler === 'function', 'a function');
    WaitDeadline.of('RpcPeer', { timeoutMs }, WAIT_OPTIONS, SYSTEM_CLOCK); // Checks the time.
    this.#stream = stream;
    this.#handler = handler;
    this.#timeoutMs = timeoutMs;
    this.#concurrency = checkWhole('concurrency', concurrency, 1, 0xffff);
    this.#work = new PQueue({ concurrency });
    const reader = new MessageReader(RPC_FRAMES, {
      onMessage: (header, body) => this.#onFrame(header, body),
      onMalformed: (why) => this.#refuse(why),
    });
    stream.on('data', (bytes: Buffer) => reader.feed(bytes));
    stream.on('error', (error) => this.#fail(error));
    stream.on('close', () => this.#fail(new RoceError('ERR_ROCE_CLOSED', 'the stream is closed')));
  }

  /**
   * Sends a request of at most 16 MiB; a number stands for `{timeoutMs}`. Rejects with ERR_ROCE_OUT_OF_RANGE for a request that is too long,
   * ERR_ROCE_IO with the peer's message if it fails there, ERR_ROCE_TIMEOUT without an answer in time, ERR_ROCE_ABORTED when the signal is
   * aborted, ERR_ROCE_CLOSED or the error that ended the stream. A call that was given up is cancelled at the peer.
   */
  async call(request: Uint8Array, options: WaitOptions | number = {}): Promise<Buffer> {
    const { signal, ...rest } = typeof options === 'number' ? { timeoutMs: options, signal: undefined } : options;
    const timeoutMs = rest.timeoutMs ?? this.#timeoutMs;
    const wait = { ...rest, timeoutMs, ...(signal !== undefined && { signal }) };
    const deadline = WaitDeadline.of('call', wait, WAIT_OPTIONS, SYSTEM_CLOCK);
    if (this.#failure !== undefined) throw this.#failure;
    checkKind('the request', request, request instanceof Uint8Array, 'bytes');
    if (request.length > RPC_BODY_BYTES_MAX) {
      const message = `a request of ${request.length} bytes is too long`;
      throw new RoceError('ERR_ROCE_OUT_OF_RANGE', message, `at most ${RPC_BODY_BYTES_MAX}`);
    }
    const deadlineMs = Math.min(Math.ceil(timeoutMs), RPC_NO_DEADLINE);
    return waitFor(deadline, (cancellation) => this.#ask(request, deadlineMs, cancellation));
  }

  #ask(request: Uint8Array, deadlineMs: number, cancellation: CancellationState): Promise<Buffer> {
    const id = this.#nextId++;
    return new Promise<Buffer>((resolve, reject) => {
      this.#calls.set(id, { resolve, reject });
      cancellation.onEnd = (error) => {
        if (this.#calls.delete(id)) void this.#send('cancel', id);
        reject(error);
      };
      void this.#send('request', id, request, deadlineMs);
    });
  }

  #onFrame(header: RpcHeader, body: Buffer): void {
    const intact = isIntact(header, body);
    if (!intact) this.crcMismatches++;
    switch (header.kind) {
      case 'request':
        if (intact) this.#enqueue(header, body);
        else void this.#send('error', header.id, Buffer.from('the request was damaged in transit'));
        return;
      case 'cancel':
        this.#requests.get(header.id)?.abort(new RoceError('ERR_ROCE_ABORTED', 'the caller gave up'));
        return;
      default: {
        const call = this.#calls.get(header.id);
        this.#calls.delete(header.id);
        if (!intact) call?.reject(new RoceError('ERR_ROCE_IO', 'the answer was damaged in transit'));
        else if (header.kind === 'response') call?.resolve(body);
        else call?.reject(new RoceError('ERR_ROCE_IO', body.toString()));
      }
    }
  }

  #enqueue({ id, deadlineMs }: RpcHeader, body: Buffer): void {
    if (this.#requests.has(id)) {
      this.#refuse('it used the number of an open call again');
      return;
    }
    const abort = new AbortController();
    this.#requests.set(id, abort);
    const late = () => abort.abort(new RoceError('ERR_ROCE_TIMEOUT', `the caller waited for ${deadlineMs} ms`));
    const stopTimer =
      deadlineMs === RPC_NO_DEADLINE
        ? () => {}
        : SYSTEM_CLOCK.wakeAt(SYSTEM_CLOCK.nowNs() + deadlineMs * NS_PER_MS, late);
    whenAborted(abort.signal, stopTimer);
    // Who waits for more than it can be given at once stops being read.
    if (this.#work.size >= this.#concurrency) this.#stream.pause();
    void this.#work.add(async () => {
      this.#stream.resume();
      if (!abort.signal.aborted) await this.#serve(id, body, abort.signal);
      stopTimer();
      this.#requests.delete(id);
    });
  }

  /** Resolves when the answer has left, or nobody waits for it. Never rejects: whatever the handler does concerns its caller alone. */
  async #serve(id: bigint, request: Buffer, signal: AbortSignal): Promise<void> {
    let answer: Uint8Array;
    try {
      if (this.#handler === undefined) throw new Error('this side serves no requests');
      answer = await this.#handler(request, { signal });
      checkKind('the answer', answer, answer instanceof Uint8Array, 'bytes');
      if (answer.length > RPC_BODY_BYTES_MAX) {
        throw new Error(`the answer of ${answer.length} bytes is too long: at most ${RPC_BODY_BYTES_MAX}`);
      }
    } catch (error) {
      if (!signal.aborted) await this.#send('error', id, Buffer.from(textOf(error)));
      return;
    }
    if (!signal.aborted) await this.#send('response', id, answer);
  }

  /** Resolves when the frame has left or never will. */
  #send(kind: RpcKind, id: bigint, body: Uint8Array = NOTHING, deadlineMs = 0): Promise<void> {
    if (this.#failure !== undefined) return Promise.resolve();
    return new Promise((resolve) => {
      this.#stream.write(encodeRpc({ kind, id, deadlineMs }, body), () => resolve());
    });
  }

  #refuse(why: string): void {
    this.#stream.destroy(new RoceError('ERR_ROCE_MISMATCH', `the peer does not speak RPC: ${why}`));
  }

  #fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#work.clear();
    for (const abort of this.#requests.values()) abort.abort(error);
    for (const { reject } of this.#calls.values()) reject(error);
    this.#calls.clear();
  }
}

const NOTHING = new Uint8Array(0);

/** What a caller learns of something thrown, which may be anything. */
function textOf(error: unknown): string {
  const text = error instanceof Error ? error.message : error;
  return typeof text === 'string' ? text.slice(0, MESSAGE_MAX) : 'the handler failed without an Error';
}
