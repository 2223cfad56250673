// @ts-check
/** WebSocket by ws: the client masks, as the protocol demands; no compression. */

import { once } from 'node:events';
import { WebSocket, WebSocketServer } from 'ws';

const BUFFERED_BYTES_MAX = 16 * 1024 * 1024;

function channelOf(/** @type {WebSocket} */ socket) {
  socket.binaryType = 'nodebuffer';
  const channel = {
    send: (/** @type {Buffer} */ data) => {
      if (socket.bufferedAmount < BUFFERED_BYTES_MAX) socket.send(data);
      else return new Promise((/** @type {(value: void) => void} */ resolve) => socket.send(data, () => resolve()));
    },
    onMessage: (/** @type {Buffer} */ _message) => {},
    close: () => socket.close(),
  };
  socket.on('message', (data) => channel.onMessage(/** @type {Buffer} */ (data)));
  return channel;
}

export async function listen(/** @type {(channel: any) => void} */ onChannel, /** @type {number} */ messageBytesMax) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', maxPayload: messageBytesMax });
  server.on('connection', (socket) => onChannel(channelOf(socket)));
  await once(server, 'listening');
  return /** @type {import('node:net').AddressInfo} */ (server.address()).port;
}

export async function connect(/** @type {number} */ port) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}`);
  await once(socket, 'open');
  return channelOf(socket);
}
