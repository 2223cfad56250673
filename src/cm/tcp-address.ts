/** The address of a connection's other end, as Node writes it. */

import type { Socket } from 'node:net';
import { IpAddress } from '../packet/address.js';

/** Of `remoteAddress` or `localAddress` of a socket; undefined for a connection that was gone at once. An IPv6 address of a link says which link: that is left out. */
export function tcpAddress(text: string | undefined): IpAddress | undefined {
  return text === undefined ? undefined : IpAddress.parse(text.replace(/%.*/, ''));
}

/** Peers on a Unix socket have no address; they are one host. */
const THIS_HOST = IpAddress.parse('127.0.0.1');

/** The address that the peer of a socket is counted by. */
export function peerAddress(socket: Socket): IpAddress {
  return tcpAddress(socket.remoteAddress) ?? THIS_HOST;
}
