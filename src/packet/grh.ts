/**
 * The 40 bytes before every received datagram: an IPv6 header, or an IPv4 header after 20 meaningless bytes (IBTA
 * annex A17).
 */

import { checkKind } from '../core/arguments.js';
import { IpAddress } from './address.js';

const GRH_BYTES = 40;
const IPV6_SOURCE = 8;
const IPV4_SOURCE = 32;

/**
 * IP address of the sender of a UD message, from the first 40 bytes of its receive buffer. Throws
 * ERR_ROCE_INVALID_ARGUMENT for fewer.
 */
export function senderInGrh(grh: Uint8Array): IpAddress {
  const isWhole = grh instanceof Uint8Array && grh.length >= GRH_BYTES;
  checkKind('grh', grh, isWhole, `the first ${GRH_BYTES} bytes of a receive buffer`);
  const isIpv6 = grh[0] >> 4 === 6;
  return IpAddress.fromBytes(
    isIpv6 ? grh.subarray(IPV6_SOURCE, IPV6_SOURCE + 16) : grh.subarray(IPV4_SOURCE, IPV4_SOURCE + 4),
  );
}
