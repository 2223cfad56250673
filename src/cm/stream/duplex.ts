import { Duplex } from 'node:stream';
import type { MessageStream } from './message-stream.js';

/** Options of {@link Connection.stream}. */
export interface StreamOptions {
  /** Bytes that each direction buffers in this process, in addition to the connection's receives. Default 256 KiB. */
  readonly highWaterMark?: number | undefined;
}

const HIGH_WATER_MARK = 256 * 1024;

/** Bytes in both directions; made by {@link Connection.stream}. Its end, or its destruction, closes the connection. */
export class ConnectionStream extends Duplex {
  readonly #stream: MessageStream;
  #isWanted = false;
  #isEnded = false;

  /** @internal */
  constructor(stream: MessageStream, { highWaterMark = HIGH_WATER_MARK }: StreamOptions) {
    super({ allowHalfOpen: true, readableHighWaterMark: highWaterMark, writableHighWaterMark: highWaterMark });
    this.#stream = stream;
    stream.onReadable = () => this.#flush();
    stream.onFailure = (error) => this.destroy(error);
  }

  /** @internal */
  override _read(): void {
    this.#isWanted = true;
    this.#flush();
  }

  /** @internal */
  override _write(data: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#stream.write([data]).then(() => done(), done);
  }

  /** @internal */
  override _writev(
    chunks: ReadonlyArray<{ readonly chunk: Buffer; readonly encoding: BufferEncoding }>,
    done: (error?: Error | null) => void,
  ): void {
    this.#stream.write(chunks.map(({ chunk }) => chunk)).then(() => done(), done);
  }

  /** @internal */
  override _final(done: (error?: Error | null) => void): void {
    this.#stream.end().then(() => done(), done);
  }

  /** @internal */
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#stream.close(error).then(
      () => done(error),
      (failure: Error) => done(error ?? failure),
    );
  }

  #flush(): void {
    while (this.#isWanted && !this.destroyed) {
      const bytes = this.#stream.take();
      if (bytes === undefined) break;
      this.#isWanted = this.push(bytes);
    }
    if (!this.#stream.isAtEnd || this.#isEnded) return;
    this.#isEnded = true;
    this.push(null);
  }
}
