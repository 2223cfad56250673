// @ts-check
/** A bidirectional stream of @grpc/grpc-js whose messages are bytes as they are. */

import * as grpc from '@grpc/grpc-js';

const bytes = (/** @type {Buffer} */ data) => data;
const method = {
  path: '/bench.Peer/Talk',
  requestStream: true,
  responseStream: true,
  requestSerialize: bytes,
  requestDeserialize: bytes,
  responseSerialize: bytes,
  responseDeserialize: bytes,
};
const limits = { 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 };

function channelOf(/** @type {any} */ call) {
  const channel = {
    send: (/** @type {Buffer} */ data) => {
      if (!call.write(data)) return new Promise((/** @type {(value: void) => void} */ r) => call.once('drain', r));
    },
    onMessage: (/** @type {Buffer} */ _message) => {},
    close: () => call.end(),
  };
  call.on('data', (/** @type {Buffer} */ data) => channel.onMessage(data));
  call.on('error', () => {});
  return channel;
}

export async function listen(/** @type {(channel: any) => void} */ onChannel) {
  const server = new grpc.Server(limits);
  server.addService(/** @type {any} */ ({ Talk: method }), {
    Talk: (/** @type {any} */ call) => onChannel(channelOf(call)),
  });
  return new Promise((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, port) => {
      if (error === null) resolve(port);
      else reject(error);
    });
  });
}

export async function connect(/** @type {number} */ port) {
  const Client = grpc.makeGenericClientConstructor(/** @type {any} */ ({ Talk: method }), 'Peer');
  const client = new Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure(), limits);
  return channelOf(/** @type {any} */ (client)['Talk']());
}
