/** The address of a TCP connection's other end, as Node writes it. */

import { IpAddress } from '../packet/address.js';

/** Of `remoteAddress` or `localAddress` of a socket; undefined for a connection that was gone at once. An IPv6 address of a link says which link: that is left out. */
export function tcpAddress(text: string | undefined): IpAddress | undefined {
  return text === undefined ? undefined : IpAddress.parse(text.replace(/%.*/, ''));
}
