/** The protocol has backpressure: it grants no credits for unread data. */

import { Duplex } from 'node:stream';
import { checkKind } from '../../core/arguments.js';
import type { SuConnection } from '../su/su-connection.js';
import type { SuChunk } from '../su/su-receiver.js';
import type { SuStream } from '../su-stream/su-stream.js';

/** A byte stream in both directions; message boundaries are lost. */
export class SuDuplex extends Duplex {
  readonly #connection: SuConnection | SuStream;
  readonly #held: SuChunk[] = [];
  #wanted = false;
  #peerEnded = false;

  /**
   * Takes over the connection, or the stream that outlives its connections, which is closed when both directions have
   * ended, or with the stream.
   */
  constructor(connection: SuConnection | SuStream) {
    checkKind('connection', connection, typeof connection?.write === 'function', 'a connection or stream of sU');
    super({ allowHalfOpen: true });
    this.#connection = connection;
    connection.onChunk = (chunk) => {
      this.#held.push(chunk);
      this.#flush();
    };
    connection.onEnd = () => {
      this.#peerEnded = true;
      this.#flush();
    };
    connection.onFailure = (error) => this.destroy(error);
  }

  /** @internal */
  override _read(): void {
    this.#wanted = true;
    this.#flush();
  }

  /** @internal */
  override _write(data: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#connection.write(data).then(() => done(), done);
  }

  /** @internal */
  override _final(done: (error?: Error | null) => void): void {
    this.#connection.end().then(() => done(), done);
  }

  /** @internal */
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    for (const { release } of this.#held.splice(0)) release();
    this.#connection.close().then(() => done(error), done);
  }

  #flush(): void {
    while (this.#wanted && this.#held.length > 0) {
      const chunk = this.#held.shift()!;
      this.#wanted = this.push(Buffer.from(chunk.bytes));
      chunk.release();
    }
    if (this.#peerEnded && this.#held.length === 0) {
      this.#peerEnded = false;
      this.push(null);
    }
  }
}
