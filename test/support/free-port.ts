/** Ports of loopback for servers that have to be told theirs. */

import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/**
 * Ports that the system gives to nobody by itself (Linux begins at 32,768, others at 49,152), and that no test names: whoever connects somewhere, or binds port 0, could otherwise take one
 * between the answer and its use.
 */
export const FREE_PORTS = { first: 28_000, count: 4_500 } as const;

/** Those that this process has had: none is given twice, before its first user has it. */
const given = new Set<number>();

/** A TCP port where nobody listens. */
export function freePort(host = '127.0.0.1'): Promise<number> {
  return untilFree((port) => createServer().listen(port, host));
}

/** A UDP port that nobody has. */
export function freeUdpPort(host = '127.0.0.1'): Promise<number> {
  return untilFree((port) => createSocket(host.includes(':') ? 'udp6' : 'udp4').bind(port, host));
}

/** Different UDP ports that nobody has. */
export async function freeUdpPorts(count: number, host?: string): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) ports.push(await freeUdpPort(host));
  return ports;
}

async function untilFree(open: (port: number) => Server | Socket): Promise<number> {
  for (;;) {
    const port = FREE_PORTS.first + Math.floor(Math.random() * FREE_PORTS.count);
    if (given.has(port)) continue;
    const holder = open(port);
    const isFree = await once(holder, 'listening').then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    holder.close();
    await once(holder, 'close');
    given.add(port);
    return port;
  }
}
