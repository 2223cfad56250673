// @ts-check
/** One stream of HTTP/2 without TLS, both ways, with windows large enough for loopback. */

import { once } from 'node:events';
import http2 from 'node:http2';
import { framedStream } from './framed-stream.js';

const STREAM_WINDOW_BYTES = 16 * 1024 * 1024;
const SESSION_WINDOW_BYTES = 64 * 1024 * 1024;
const settings = { initialWindowSize: STREAM_WINDOW_BYTES, maxFrameSize: 1024 * 1024 };

export async function listen(/** @type {(channel: any) => void} */ onChannel, /** @type {number} */ messageBytesMax) {
  const server = http2.createServer({ settings });
  server.on('session', (session) => session.setLocalWindowSize(SESSION_WINDOW_BYTES));
  server.on('stream', (stream) => {
    stream.respond({ ':status': 200 });
    onChannel(framedStream(stream, messageBytesMax));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return /** @type {import('node:net').AddressInfo} */ (server.address()).port;
}

export async function connect(/** @type {number} */ port, /** @type {number} */ messageBytesMax) {
  const session = http2.connect(`http://127.0.0.1:${port}`, { settings });
  await once(session, 'connect');
  session.setLocalWindowSize(SESSION_WINDOW_BYTES);
  const stream = session.request({ ':method': 'POST', ':path': '/' }, { endStream: false });
  await once(stream, 'response');
  return framedStream(stream, messageBytesMax);
}
