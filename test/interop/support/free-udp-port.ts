/** UDP ports for processes that cannot pick one themselves. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';

/** A port of 127.0.0.1 that nobody used a moment ago. */
export async function freeUdpPort(): Promise<number> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const { port } = socket.address();
  socket.close();
  return port;
}
