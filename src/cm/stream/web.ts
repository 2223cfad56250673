import { RoceError } from '../../core/errors.js';
import type { MessageStream } from './message-stream.js';

/**
 * Both directions of a connection; made by {@link Connection.webStreams}. When both have ended the connection is
 * closed.
 */
export interface WebStreams {
  /** The peer's data as a byte stream, with BYOB readers. Cancelling it discards what the peer still sends. */
  readonly readable: ReadableStream<Uint8Array>;
  /** Data for the peer. Aborting it sends the peer the reason and ends the connection. */
  readonly writable: WritableStream<Uint8Array>;
}

/** Puts a readable and a writable on a stream. @internal */
export function webStreamsOver(stream: MessageStream): WebStreams {
  let wake = () => {};
  let failReadable = (_error: Error) => {};
  let failWritable = (_error: Error) => {};
  let hasWritten = false;
  let hasRead = false;
  const closeWhenOver = async () => {
    if (hasWritten && hasRead) await stream.close();
  };
  stream.onReadable = () => wake();
  stream.onFailure = (cause) => {
    const error = cause ?? new RoceError('ERR_ROCE_CLOSED', 'the connection is closed');
    failReadable(error);
    failWritable(error);
    wake();
    void stream.close(error);
  };
  const readable = new ReadableStream(
    {
      type: 'bytes',
      start: (controller) => {
        failReadable = (error) => controller.error(error);
      },
      pull: async (controller) => {
        let bytes = stream.take();
        while (bytes === undefined && !stream.isAtEnd && !stream.hasFailed) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
          bytes = stream.take();
        }
        if (bytes !== undefined) controller.enqueue(new Uint8Array(bytes));
        else if (stream.isAtEnd) {
          hasRead = true;
          controller.close();
          controller.byobRequest?.respond(0);
          await closeWhenOver();
        }
      },
      cancel: async () => {
        stream.discard();
        hasRead = true;
        await closeWhenOver();
      },
    },
    { highWaterMark: 0 },
  );
  const writable = new WritableStream<Uint8Array>({
    start: (controller) => {
      failWritable = (error) => controller.error(error);
    },
    write: (chunk) => stream.write([bytesOf(chunk)]),
    close: async () => {
      await stream.end();
      hasWritten = true;
      await closeWhenOver();
    },
    abort: (reason: unknown) => {
      const error = reason instanceof Error ? reason : new RoceError('ERR_ROCE_ABORTED', String(reason));
      failReadable(error);
      return stream.close(error);
    },
  });
  return { readable, writable };
}

function bytesOf(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk;
  throw new RoceError(
    'ERR_ROCE_INVALID_ARGUMENT',
    `a chunk must be bytes, not a ${typeof chunk}`,
    'pipe text through a TextEncoderStream',
  );
}
