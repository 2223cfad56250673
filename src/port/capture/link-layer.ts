/**
 * From the first captured byte to the IP header: Ethernet with any number of VLAN tags, Linux cooked captures, the
 * loopback header of BSD, or IP at once.
 */

import { readU16 } from '../../core/bytes.js';
import { ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_VLAN, MAC_BYTES, VLAN_TAG_BYTES } from '../../packet/ethernet.js';
import type { CapturedPacket } from './captured-packet.js';
import { LINKTYPE_ETHERNET, LINKTYPE_RAW } from './pcapng-blocks.js';

const LINKTYPE_NULL = 0;
/** RAW IP in files of tools that write the number of their system. */
const LINKTYPE_RAW_OF_BSD = 12;
const LINKTYPE_LOOP = 108;
const LINKTYPE_LINUX_SLL = 113;
const LINKTYPE_LINUX_SLL2 = 276;
const LINKTYPE_IPV4 = 228;
const LINKTYPE_IPV6 = 229;
/** Outer tags: IEEE 802.1ad, and the numbers that switches used before it. */
const TAGS: ReadonlySet<number> = new Set([ETHERTYPE_VLAN, 0x88a8, 0x9100, 0x9200, 0x9300]);
/** MPLS, MPLS multicast, PPPoE, MACsec. */
const TUNNELS: ReadonlySet<number> = new Set([0x8847, 0x8848, 0x8864, 0x88e5]);
/** The InfiniBand GRH follows the Ethernet header (annex A16). */
const ETHERTYPE_ROCE_V1 = 0x8915;
const SLL_BYTES = 16;
const SLL2_BYTES = 20;
const FAMILY_BYTES = 4;

export const NO_IP = -1;
export const IN_TUNNEL = -2;
export const UNKNOWN_LINK_TYPE = -3;
export const ROCE_V1 = -4;
export const CUT_BEFORE_IP = -5;

export function ipOffsetOf({ linkType, bytes }: CapturedPacket): number {
  switch (linkType) {
    case LINKTYPE_ETHERNET:
      return afterEtherType(bytes, 2 * MAC_BYTES, 2 * MAC_BYTES + 2);
    case LINKTYPE_RAW:
    case LINKTYPE_RAW_OF_BSD:
    case LINKTYPE_IPV4:
    case LINKTYPE_IPV6:
      return 0;
    case LINKTYPE_NULL:
    case LINKTYPE_LOOP:
      return FAMILY_BYTES;
    case LINKTYPE_LINUX_SLL:
      return afterEtherType(bytes, SLL_BYTES - 2, SLL_BYTES);
    case LINKTYPE_LINUX_SLL2:
      return afterEtherType(bytes, 0, SLL2_BYTES);
    default:
      return UNKNOWN_LINK_TYPE;
  }
}

function afterEtherType(bytes: Uint8Array, typeAt: number, headerBytes: number): number {
  let at = typeAt;
  let offset = headerBytes;
  while (offset <= bytes.length) {
    const ethertype = readU16(bytes, at);
    if (ethertype === ETHERTYPE_IPV4 || ethertype === ETHERTYPE_IPV6) return offset;
    if (ethertype === ETHERTYPE_ROCE_V1) return ROCE_V1;
    if (TUNNELS.has(ethertype)) return IN_TUNNEL;
    if (!TAGS.has(ethertype)) return NO_IP;
    at = offset + VLAN_TAG_BYTES - 2;
    offset += VLAN_TAG_BYTES;
  }
  return CUT_BEFORE_IP;
}
