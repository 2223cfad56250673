/** Ethernet II headers with at most one IEEE 802.1Q tag. MAC addresses are six bytes in the order of the wire. */

import { toHex, writeU16 } from '../core/bytes.js';
import { RoceError } from '../core/errors.js';

/** Length of a MAC address. */
export const MAC_BYTES = 6;
/** Length of an untagged header: two addresses and the EtherType. */
export const ETHERNET_BYTES = 14;
/** What an IEEE 802.1Q tag adds to the header. */
export const VLAN_TAG_BYTES = 4;
/** The shortest frame without its check sequence. */
export const ETHERNET_FRAME_BYTES_MIN = 60;
/** What a frame costs on the wire beyond its bytes: preamble 8, check sequence 4, gap 12. */
export const ETHERNET_WIRE_BYTES = 24;

/** EtherType of IPv4 (RFC 894). */
export const ETHERTYPE_IPV4 = 0x0800;
/** EtherType of ARP (RFC 826). */
export const ETHERTYPE_ARP = 0x0806;
/** EtherType of a tag (IEEE 802.1Q): priority, VLAN and the real EtherType follow. */
export const ETHERTYPE_VLAN = 0x8100;
/** EtherType of IPv6 (RFC 2464). */
export const ETHERTYPE_IPV6 = 0x86dd;
/** Pause frames of all kinds (IEEE 802.3 clause 31). */
export const ETHERTYPE_MAC_CONTROL = 0x8808;

/** Every station of the segment: ff:ff:ff:ff:ff:ff. Not to be written to. */
export const BROADCAST_MAC: Uint8Array = new Uint8Array(MAC_BYTES).fill(0xff);

/** From six pairs of hex digits with colons or dashes. Throws ERR_ROCE_MALFORMED. */
export function parseMac(text: string): Uint8Array {
  if (!/^[0-9a-f]{2}([:-][0-9a-f]{2}){5}$/i.test(text)) {
    throw new RoceError('ERR_ROCE_MALFORMED', `'${text}' is not a MAC address`, 'write 02:00:00:00:00:01');
  }
  return Uint8Array.from(text.split(/[:-]/), (pair) => Number.parseInt(pair, 16));
}

/** `02:00:00:00:00:01` */
export function formatMac(mac: Uint8Array): string {
  return toHex(mac, 1).replaceAll(' ', ':');
}

/** The MAC address at `o`, copied. */
export function readMac(b: Uint8Array, o: number): Uint8Array {
  return Uint8Array.from(b.subarray(o, o + MAC_BYTES)); // A Buffer's slice() would be a view.
}

/** Writes an untagged header; returns the offset after it, as all writers do. */
export function writeEthernet(
  b: Uint8Array,
  o: number,
  destination: Uint8Array,
  source: Uint8Array,
  ethertype: number,
): number {
  for (let i = 0; i < MAC_BYTES; i++) {
    b[o + i] = destination[i];
    b[o + MAC_BYTES + i] = source[i];
  }
  writeU16(b, o + 12, ethertype);
  return o + ETHERNET_BYTES;
}

/** Writes a header with an 802.1Q tag: `pcp` 0..7, `vlanId` 0..4095 (0: the tag carries only a priority). */
export function writeEthernetTagged(
  b: Uint8Array,
  o: number,
  destination: Uint8Array,
  source: Uint8Array,
  pcp: number,
  vlanId: number,
  ethertype: number,
): number {
  const next = writeEthernet(b, o, destination, source, ETHERTYPE_VLAN);
  writeU16(b, next, (pcp << 13) | vlanId);
  writeU16(b, next + 2, ethertype);
  return next + VLAN_TAG_BYTES;
}
