/** TCP connections of a stranger: silent ones, ones that trickle, and hellos that claim what is not so. */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { IpAddress } from '../../../src/packet/address.js';

/** Where a stranger connects to, and from which address of his. */
export interface StrangerOptions {
  readonly host: string;
  readonly port: number;
  /** His address. */
  readonly from: string;
}

/** One connection of a stranger. It may be reset at any time, which is no error of the test. */
export async function strangerConnects({ host, port, from }: StrangerOptions): Promise<Socket> {
  const socket = connect({ host, port, localAddress: from });
  socket.on('error', () => {}); // It may be refused or reset.
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
  return socket;
}

/** Many at a time. Each says `text` (default: nothing), and reads nothing. Close them by {@link hangUp}. */
export async function crowd(count: number, options: StrangerOptions & { readonly text?: string }): Promise<Socket[]> {
  const sockets = await Promise.all(Array.from({ length: count }, () => strangerConnects(options)));
  if (options.text !== undefined) for (const socket of sockets) socket.write(options.text);
  return sockets;
}

/** How many the other side has not closed. */
export function held(sockets: readonly Socket[]): number {
  return sockets.filter((socket) => !socket.destroyed && socket.readyState === 'open').length;
}

export function hangUp(sockets: readonly Socket[]): void {
  for (const socket of sockets) socket.destroy();
}

/** A hello of the exchange as one of ours would say it, for the queue pair 77 of `address`; `claims` replace fields. */
export function helloOf(address: string, claims: Record<string, unknown> = {}): string {
  const hello = {
    rocev2: 1,
    gid: IpAddress.parse(address).gidHex,
    udpPort: 4791,
    qpn: 77,
    psn: 1,
    mtu: 1024,
    recovery: 'go-back-n',
    receiveBudgetPackets: 128,
    maxDestRdAtomic: 16,
    purpose: {},
    ...claims,
  };
  return `${JSON.stringify(hello)}\n`;
}

/** Text that is JSON, `depth` arrays deep. */
export const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;
