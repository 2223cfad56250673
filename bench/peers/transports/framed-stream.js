// @ts-check
/** Messages over any duplex stream: four bytes of length, then the message, gathered in one buffer that is used again. */

const HEADER_BYTES = 4;

/**
 * A message channel.
 * @typedef {object} Channel
 * @property {(message: Buffer) => void | Promise<void>} send a promise when the sender should wait
 * @property {(message: Buffer) => void} onMessage the message is valid during the call
 * @property {() => void} close
 */

/**
 * @param {import('node:stream').Duplex} stream
 * @param {number} messageBytesMax
 * @returns {Channel}
 */
export function framedStream(stream, messageBytesMax) {
  const header = Buffer.alloc(HEADER_BYTES);
  const message = Buffer.alloc(messageBytesMax);
  let headerFilled = 0;
  let filled = 0;
  /** @type {Channel} */
  const channel = {
    send: (data) => {
      const length = Buffer.allocUnsafe(HEADER_BYTES);
      length.writeUInt32BE(data.length);
      stream.cork();
      stream.write(length);
      const flowing = stream.write(data);
      stream.uncork();
      if (!flowing) return new Promise((resolve) => stream.once('drain', resolve));
    },
    onMessage: () => {},
    close: () => stream.end(),
  };
  stream.on('error', () => {});
  stream.on('data', (/** @type {Buffer} */ chunk) => {
    let o = 0;
    while (o < chunk.length) {
      if (headerFilled < HEADER_BYTES) {
        header[headerFilled++] = chunk[o++];
        continue;
      }
      const length = header.readUInt32BE();
      const part = Math.min(length - filled, chunk.length - o);
      chunk.copy(message, filled, o, o + part);
      filled += part;
      o += part;
      if (filled < length) continue;
      headerFilled = 0;
      filled = 0;
      channel.onMessage(message.subarray(0, length));
    }
  });
  return channel;
}
