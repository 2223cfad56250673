/** Ports for servers that are told theirs: free, outside of what the system gives away, and none twice. */

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { expect, it } from 'vitest';
import { FREE_PORTS, freePort, freeUdpPorts } from './free-port.js';

const RANGE = '/proc/sys/net/ipv4/ip_local_port_range';

it('can be listened on, and are different', async () => {
  const [port, ports] = [await freePort(), await freeUdpPorts(3)];
  const tcp = createServer().listen(port, '127.0.0.1');
  const sockets = ports.map((one) => createSocket('udp4').bind(one, '127.0.0.1'));
  const holders = [tcp, ...sockets];
  await Promise.all(holders.map((holder) => once(holder, 'listening')));
  expect(new Set(holders.map((holder) => (holder.address() as { port: number }).port)).size).toBe(4);
  for (const holder of holders) holder.close();
});

it.runIf(existsSync(RANGE))('are none that the system gives to somebody by itself', () => {
  const [first, last] = readFileSync(RANGE, 'utf8').trim().split(/\s+/).map(Number);
  expect(FREE_PORTS.first > last || FREE_PORTS.first + FREE_PORTS.count <= first).toBe(true);
});
