/** UDP ports for processes that cannot pick one themselves. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';

/** Different ports of 127.0.0.1 that nobody used a moment ago. */
export async function freeUdpPorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) ports.add(await freeUdpPort());
  return [...ports];
}

/** A port of 127.0.0.1 that nobody used a moment ago. */
export async function freeUdpPort(): Promise<number> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const { port } = socket.address();
  socket.close();
  return port;
}
