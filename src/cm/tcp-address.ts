/** The address of a connection's other end, as Node writes it. */

import type { Socket } from 'node:net';
import { IpAddress } from '../packet/address.js';

/** Strips the zone of a link-local IPv6 address. */
export function tcpAddress(text: string | undefined): IpAddress | undefined {
  return text === undefined ? undefined : IpAddress.parse(text.replace(/%.*/, ''));
}

/** Peers on a Unix socket have no address; they count as one host. */
const THIS_HOST = IpAddress.parse('127.0.0.1');

/** The address that the peer of a socket is counted by. */
export function peerAddress(socket: Socket): IpAddress {
  return tcpAddress(socket.remoteAddress) ?? THIS_HOST;
}
