// @ts-check
/** Bare datagrams by node:dgram: nothing is repeated, ordered or checked. What the other UDP transports have to live with. */

import dgram from 'node:dgram';
import { once } from 'node:events';

const SOCKET_BUFFER_BYTES = 4 * 1024 * 1024;
const options = /** @type {const} */ ({
  type: 'udp4',
  recvBufferSize: SOCKET_BUFFER_BYTES,
  sendBufferSize: SOCKET_BUFFER_BYTES,
});

function channelOf(/** @type {dgram.Socket} */ socket) {
  const channel = {
    send: (/** @type {Buffer} */ data) => socket.send(data),
    onMessage: (/** @type {Buffer} */ _message) => {},
    close: () => socket.close(),
  };
  socket.on('message', (message) => channel.onMessage(message));
  return channel;
}

export async function listen(/** @type {(channel: any) => void} */ onChannel) {
  const socket = dgram.createSocket(options);
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  socket.once('message', (_, { port, address }) => socket.connect(port, address));
  onChannel(channelOf(socket));
  return socket.address().port;
}

export async function connect(/** @type {number} */ port) {
  const socket = dgram.createSocket(options);
  socket.connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.send(Buffer.alloc(0)); // Tells the server where to answer.
  return channelOf(socket);
}
