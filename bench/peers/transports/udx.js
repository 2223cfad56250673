// @ts-check
/** A stream of udx-native over UDP, framed. */

import UDX from 'udx-native';
import { framedStream } from './framed-stream.js';

const SERVER_STREAM = 1;
const CLIENT_STREAM = 2;

export async function listen(/** @type {(channel: any) => void} */ onChannel, /** @type {number} */ messageBytesMax) {
  const udx = new UDX();
  const socket = udx.createSocket();
  socket.bind(0, '127.0.0.1');
  const stream = udx.createStream(SERVER_STREAM);
  onChannel(framedStream(stream, messageBytesMax));
  return {
    port: socket.address().port,
    // Neither side learns of the other by itself.
    meet: (/** @type {number} */ port) => stream.connect(socket, CLIENT_STREAM, port, '127.0.0.1'),
  };
}

export async function connect(/** @type {{port: number}} */ { port }, /** @type {number} */ messageBytesMax) {
  const udx = new UDX();
  const socket = udx.createSocket();
  socket.bind(0, '127.0.0.1');
  const stream = udx.createStream(CLIENT_STREAM);
  stream.connect(socket, SERVER_STREAM, port, '127.0.0.1');
  return Object.assign(framedStream(stream, messageBytesMax), { hello: socket.address().port });
}
