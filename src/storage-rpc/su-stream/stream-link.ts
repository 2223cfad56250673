import type { HostTransport } from '../../cm/rdma-fallback.js';
import { crc32c } from '../../core/crc32c.js';
import { RoceError } from '../../core/errors.js';
import type { ByteStream } from '../stream/byte-stream.js';
import { MessageReader } from '../stream/message-reader.js';
import type { SuConnection } from '../su/su-connection.js';
import { encodeFrame, STREAM_FORMAT, type StreamFrame } from './su-stream-frame.js';

interface Carrier {
  send(bytes: Uint8Array): Promise<void>;
  close(): Promise<void>;
}

const EMPTY = Buffer.alloc(0);

export class StreamLink {
  readonly transport: HostTransport;
  onFrame: (frame: StreamFrame, body: Buffer) => void = () => {};
  onFailure: (error: Error) => void = () => {};
  readonly #carrier: Carrier;
  #sent: Promise<void> = Promise.resolve();
  readonly #reader: MessageReader<StreamFrame>;
  #hasEnded = false;

  private constructor(transport: HostTransport, carrier: Carrier) {
    this.transport = transport;
    this.#carrier = carrier;
    this.#reader = new MessageReader(STREAM_FORMAT, {
      onMessage: (frame, body) => this.#onMessage(frame, body),
      onMalformed: (why) => this.fail(new RoceError('ERR_ROCE_MISMATCH', `a frame is malformed: ${why}`)),
    });
  }

  static overRdma(connection: SuConnection): StreamLink {
    const link = new StreamLink('rdma', {
      send: (bytes) => connection.write(bytes),
      close: () => connection.close(),
    });
    connection.onChunk = ({ bytes, release }) => {
      link.#reader.feed(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
      release();
    };
    connection.onEnd = () => link.fail(new RoceError('ERR_ROCE_CONNECT', 'the peer closed the connection'));
    connection.onFailure = (error) => link.fail(error);
    return link;
  }

  static overTcp(stream: ByteStream): StreamLink {
    const link = new StreamLink('tcp', {
      send: (bytes) => new Promise((resolve) => stream.write([bytes], resolve)),
      close: async () => stream.destroy(),
    });
    stream.onData = (bytes) => link.#reader.feed(bytes);
    stream.onClose = (error) => link.fail(error);
    return link;
  }

  get sent(): Promise<void> {
    return this.#sent;
  }

  send(frame: Pick<StreamFrame, 'type' | 'offset' | 'consumed'>, body: Uint8Array = EMPTY): Promise<void> {
    this.#sent = this.#send(frame, body);
    return this.#sent;
  }

  async #send(frame: Pick<StreamFrame, 'type' | 'offset' | 'consumed'>, body: Uint8Array): Promise<void> {
    if (this.#hasEnded) return;
    try {
      await this.#carrier.send(encodeFrame(frame, body));
    } catch (error) {
      this.fail(error as Error);
    }
  }

  fail(error: Error): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.onFailure(error);
  }

  /** When it resolves, the link no longer accesses memory. */
  async close(): Promise<void> {
    this.#hasEnded = true;
    await this.#carrier.close();
  }

  #onMessage(frame: StreamFrame, body: Buffer): void {
    if (this.#hasEnded) return;
    if (crc32c(body) === frame.dataCrc) this.onFrame(frame, body);
    else this.fail(new RoceError('ERR_ROCE_CONNECT', 'data does not match its checksum'));
  }
}
