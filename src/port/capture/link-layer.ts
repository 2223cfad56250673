/**
 * From the first captured byte to the IP header: Ethernet with any number of VLAN tags, Linux cooked captures, or IP at
 * once.
 */

import { readU16 } from '../../core/bytes.js';
import { ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_VLAN, MAC_BYTES, VLAN_TAG_BYTES } from '../../packet/ethernet.js';
import type { CapturedPacket } from './captured-packet.js';
import { LINKTYPE_ETHERNET, LINKTYPE_RAW } from './pcapng-blocks.js';

const LINKTYPE_LINUX_SLL = 113;
const LINKTYPE_LINUX_SLL2 = 276;
const LINKTYPE_IPV4 = 228;
const LINKTYPE_IPV6 = 229;
const ETHERTYPE_QINQ = 0x88a8;
const ETHERTYPE_MPLS = 0x8847;
const ETHERTYPE_MPLS_MULTICAST = 0x8848;
const SLL_BYTES = 16;
const SLL2_BYTES = 20;

export const LINK_TYPES: readonly number[] = [
  LINKTYPE_ETHERNET,
  LINKTYPE_RAW,
  LINKTYPE_LINUX_SLL,
  LINKTYPE_IPV4,
  LINKTYPE_IPV6,
  LINKTYPE_LINUX_SLL2,
];

export const NO_IP = -1;
export const IN_TUNNEL = -2;
export const UNKNOWN_LINK_TYPE = -3;

export function ipOffsetOf({ linkType, bytes }: CapturedPacket): number {
  switch (linkType) {
    case LINKTYPE_ETHERNET:
      return behindEtherType(bytes, 2 * MAC_BYTES);
    case LINKTYPE_RAW:
    case LINKTYPE_IPV4:
    case LINKTYPE_IPV6:
      return 0;
    case LINKTYPE_LINUX_SLL:
      return behindEtherType(bytes, SLL_BYTES - 2);
    case LINKTYPE_LINUX_SLL2:
      return bytes.length >= SLL2_BYTES && isIp(readU16(bytes, 0)) ? SLL2_BYTES : NO_IP;
    default:
      return UNKNOWN_LINK_TYPE;
  }
}

function isIp(ethertype: number): boolean {
  return ethertype === ETHERTYPE_IPV4 || ethertype === ETHERTYPE_IPV6;
}

function behindEtherType(bytes: Uint8Array, start: number): number {
  let offset = start;
  while (offset + 2 <= bytes.length) {
    const ethertype = readU16(bytes, offset);
    if (isIp(ethertype)) return offset + 2;
    if (ethertype === ETHERTYPE_MPLS || ethertype === ETHERTYPE_MPLS_MULTICAST) return IN_TUNNEL;
    if (ethertype !== ETHERTYPE_VLAN && ethertype !== ETHERTYPE_QINQ) return NO_IP;
    offset += VLAN_TAG_BYTES;
  }
  return NO_IP;
}
