// @ts-check
/** TCP by node:net. */

import { once } from 'node:events';
import net from 'node:net';
import { framedStream } from './framed-stream.js';

export async function listen(/** @type {(channel: any) => void} */ onChannel, /** @type {number} */ messageBytesMax) {
  const server = net.createServer({ noDelay: true }, (socket) => onChannel(framedStream(socket, messageBytesMax)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return /** @type {net.AddressInfo} */ (server.address()).port;
}

export async function connect(/** @type {number} */ port, /** @type {number} */ messageBytesMax) {
  const socket = net.connect({ port, host: '127.0.0.1', noDelay: true });
  await once(socket, 'connect');
  return framedStream(socket, messageBytesMax);
}
