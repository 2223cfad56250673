/** Every body travels in its frame, because nothing can be read from the peer's memory. */

import type { Duplex } from 'node:stream';
import { NS_PER_S, RoceError } from 'rocev2/internal/core';
import { SYSTEM_CLOCK } from 'rocev2/internal/driver';
import { bodyBytesIn, HEADER_BYTES } from './frame.js';

const CLOSING_NS = NS_PER_S;

/** A byte stream for one RPC; made by {@link rpcOverStream}. */
export class RpcStream {
  /** Whose clock deadlines have. @internal */
  readonly device = { clock: SYSTEM_CLOCK };
  /** Any body fits. @internal */
  readonly sendBytesMax = Number.POSITIVE_INFINITY;
  /** Longest body that is received; a longer one ends the stream before it is read. @internal */
  bodyBytesMax = 0;
  readonly #stream: Duplex;
  #isClaimed = false;
  #failure: Error | undefined;
  #wake: () => void = () => {};
  #closing: Promise<void> | undefined;

  /** @internal */
  constructor(stream: Duplex) {
    this.#stream = stream;
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
    const header = await this.#read(HEADER_BYTES);
    const bytes = bodyBytesIn(header, this.bodyBytesMax);
    const data = bytes === 0 ? header : Buffer.concat([header, await this.#read(bytes)]);
    return { data, release: () => {} };
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

  async #read(bytes: number): Promise<Buffer> {
    for (;;) {
      const read: Buffer | null = this.#stream.read(bytes);
      if (read?.length === bytes) return read;
      if (read !== null || this.#stream.readableEnded || this.#stream.destroyed) throw this.#ended(this.#failure);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #ended(cause: Error | undefined): RoceError {
    if (cause === undefined) return new RoceError('ERR_ROCE_CLOSED', 'the byte stream has ended');
    return new RoceError('ERR_ROCE_IO', `the byte stream has failed: ${cause.message}`, undefined, { cause });
  }
}

/**
 * Carries an RPC over a byte stream, such as a TCP or TLS socket, a pipe, `connection.stream()` or a `SuDuplex`: give
 * the result to {@link connectRpc} or {@link serveRpc} instead of a connection. The RPC owns the stream from then on,
 * and destroys it at its end. Throws ERR_ROCE_INVALID_ARGUMENT for a stream of objects or text, because it has no
 * bytes.
 */
export function rpcOverStream(stream: Duplex): RpcStream {
  if (stream.readableObjectMode || stream.writableObjectMode || stream.readableEncoding !== null) {
    throw new RoceError(
      'ERR_ROCE_INVALID_ARGUMENT',
      'an RPC needs a stream of bytes',
      'leave objectMode and setEncoding out',
    );
  }
  return new RpcStream(stream);
}
