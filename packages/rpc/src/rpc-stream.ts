/** Every body travels in its frame, because nothing can be read from the peer's memory. */

import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { peerAddress } from 'rocev2/internal/cm';
import { checkKind, NS_PER_S, RoceError } from 'rocev2/internal/core';
import { SYSTEM_CLOCK } from 'rocev2/internal/driver';
import { bodyBytesIn, HEADER_BYTES } from './frame.js';

const CLOSING_NS = NS_PER_S;
/**
 * A frame that grows by less than {@link LOOK_BYTES} in each of this many checks ends the stream. Checks are counted,
 * not time, so that a suspended host does not end its streams.
 */
const LOOKS_MAX = 10;
const LOOK_NS = NS_PER_S;
const LOOK_BYTES = 16 << 10;

/** A byte stream for one RPC; made by {@link rpcOverStream}. */
export class RpcStream {
  /** Whose clock deadlines have. @internal */
  readonly device = { clock: SYSTEM_CLOCK };
  /** Any body fits. @internal */
  readonly sendBytesMax = Number.POSITIVE_INFINITY;
  /** Longest body that is received; a longer one ends the stream before it is read. @internal */
  bodyBytesMax = 0;
  /** Network of the peer, where the stream is a socket. @internal */
  readonly network: string | undefined;
  /** Whether a frame that the peer does not complete in time ends the stream. @internal */
  isTimed = false;
  /** Reserves memory for a body before it is received. @internal */
  beforeBody: (bytes: number) => Promise<void> | undefined = () => undefined;
  /** That memory is not used: the stream has ended in the middle of the body. @internal */
  onBodyLost: (bytes: number) => void = () => {};
  /**
   * Since when the peer has not continued a frame, system clock; Infinity: there is none, or it is not read. @internal
   */
  stuckSinceNs = Number.POSITIVE_INFINITY;
  #received = 0;
  readonly #stream: Duplex;
  #isClaimed = false;
  #failure: Error | undefined;
  #wake: () => void = () => {};
  #closing: Promise<void> | undefined;

  /** @internal */
  constructor(stream: Duplex) {
    this.#stream = stream;
    this.network = stream instanceof Socket ? peerAddress(stream).network : undefined;
    const wake = () => this.#wake();
    stream.on('readable', wake);
    stream.on('end', wake);
    stream.on('close', wake);
    stream.on('error', (error) => {
      this.#failure ??= error;
      wake();
    });
  }

  /** The stream belongs to `what` from now on. Throws ERR_ROCE_BUSY. @internal */
  claim(what: string): void {
    if (this.#isClaimed) throw new RoceError('ERR_ROCE_BUSY', `the stream belongs to ${what} already`);
    this.#isClaimed = true;
  }

  /** Sends a frame. Resolves when the stream has passed it on. @internal */
  sendClaimed(frame: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#stream.write(frame, (error) => {
        if (error) reject(this.#ended(error));
        else resolve();
      });
    });
  }

  /**
   * The next frame. Rejects when the stream has ended, with ERR_ROCE_MISMATCH for bytes that are no frame. @internal
   */
  async nextMessage(): Promise<{ readonly data: Buffer; release(): void }> {
    await this.#begins();
    const header = Buffer.allocUnsafe(HEADER_BYTES);
    await this.#fill(header, 0);
    const bytes = bodyBytesIn(header, this.bodyBytesMax);
    if (bytes === 0) return { data: header, release: () => {} };
    await this.beforeBody(bytes);
    try {
      const data = Buffer.allocUnsafe(HEADER_BYTES + bytes);
      data.set(header);
      await this.#fill(data, HEADER_BYTES);
      return { data, release: () => {} };
    } catch (error) {
      this.onBodyLost(bytes);
      throw error;
    }
  }

  /** Ends the stream: what was sent leaves first, if the peer takes it. @internal */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { clock } = this.device;
    await new Promise<void>((resolve) => {
      if (this.#stream.destroyed) return resolve();
      const cancel = clock.wakeAt(clock.nowNs() + CLOSING_NS, resolve);
      const done = () => {
        cancel();
        resolve();
      };
      this.#stream.once('close', done);
      this.#stream.end(done);
    });
    this.#stream.destroy();
  }

  /** The peer may wait before a frame for as long as it wants. */
  async #begins(): Promise<void> {
    while (this.#stream.readableLength === 0) await this.#more();
  }

  /** Takes what is there, so that the stream never holds more than its high-water mark. */
  async #fill(target: Buffer, from: number): Promise<void> {
    let stopLooking: (() => void) | undefined;
    try {
      for (let at = from; at < target.length; ) {
        const available = Math.min(this.#stream.readableLength, target.length - at);
        const piece: Buffer | null = available === 0 ? null : this.#stream.read(available);
        if (piece === null) {
          if (this.isTimed) stopLooking ??= this.#look();
          await this.#more();
          continue;
        }
        target.set(piece, at);
        at += piece.length;
        this.#received += piece.length;
      }
    } finally {
      stopLooking?.();
    }
  }

  async #more(): Promise<void> {
    this.#stream.read(0);
    if (this.#stream.readableLength > 0) return;
    if (this.#stream.readableEnded || this.#stream.destroyed) throw this.#ended(this.#failure);
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
  }

  /** Ends the stream if a frame does not grow. */
  #look(): () => void {
    const { clock } = this.device;
    let before = this.#received;
    let looks = 0;
    let cancel: () => void;
    this.stuckSinceNs = clock.nowNs();
    const look = () => {
      looks = this.#received - before < LOOK_BYTES ? looks + 1 : 0;
      before = this.#received;
      if (looks === 0) this.stuckSinceNs = clock.nowNs();
      if (looks === LOOKS_MAX) {
        this.#failure ??= new Error('the peer did not complete a frame in time');
        this.#stream.destroy();
        this.#wake();
      } else cancel = clock.wakeAt(clock.nowNs() + LOOK_NS, look);
    };
    cancel = clock.wakeAt(clock.nowNs() + LOOK_NS, look);
    return () => {
      cancel();
      this.stuckSinceNs = Number.POSITIVE_INFINITY;
    };
  }

  #ended(cause: Error | undefined): RoceError {
    if (cause === undefined) return new RoceError('ERR_ROCE_CLOSED', 'the byte stream has ended');
    return new RoceError('ERR_ROCE_IO', `the byte stream has failed: ${cause.message}`, undefined, { cause });
  }
}

/**
 * Carries an RPC over a byte stream: a TCP or TLS socket, a pipe, `connection.stream()` or a `SuDuplex`: give
 * the result to {@link connectRpc} or {@link serveRpc} instead of a connection. The RPC owns the stream from then on,
 * and destroys it at its end. Throws ERR_ROCE_INVALID_ARGUMENT for a stream of objects or text, because it has no
 * bytes.
 */
export function rpcOverStream(stream: Duplex): RpcStream {
  checkKind(
    'stream',
    stream,
    typeof stream?.on === 'function' && typeof stream.write === 'function',
    'a Duplex stream',
  );
  if (stream.readableObjectMode || stream.writableObjectMode || stream.readableEncoding !== null) {
    throw new RoceError(
      'ERR_ROCE_INVALID_ARGUMENT',
      'an RPC needs a stream of bytes',
      'leave objectMode and setEncoding out',
    );
  }
  return new RpcStream(stream);
}
