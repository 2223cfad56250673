/**
 * What a network card would still have to do to a frame that a packet socket shows: checksums that are not there yet, and super-frames to be cut apart
 * (virtio specification 1.2, §5.1.6: `struct virtio_net_hdr`, which the kernel puts in front of frames on request, packet(7)).
 *
 * Frames of a virtual link (veth, tap) come so, because nothing ever does that work there.
 */

import { readU16, writeU16 } from '../core/bytes.js';
import { addWords, finishChecksum } from '../packet/checksum.js';
import { ETHERNET_BYTES, ETHERTYPE_VLAN, VLAN_TAG_BYTES } from '../packet/ethernet.js';
import { IPV4_BYTES, refreshIpv4Checksum } from '../packet/ipv4.js';
import { IPV6_BYTES } from '../packet/ipv6.js';
import { UDP_BYTES, writeUdpChecksumV6 } from '../packet/udp.js';

/** Length of a `struct virtio_net_hdr`. */
export const VNET_HEADER_BYTES = 10;
const NEEDS_CHECKSUM = 1;
/** `gso_type`: an ordinary frame. */
const GSO_NONE = 0;
/** `gso_type`: datagrams of one flow behind one header (UDP_SEGMENT). */
const GSO_UDP_L4 = 5;
/** Of UDP, from its header on. */
const UDP_CHECKSUM_OFFSET = 6;

/** The frame is complete. */
export const FRAME_WHOLE = 0;
/** Several datagrams behind one header; {@link splitDatagrams} cuts them apart. */
export const FRAME_OF_DATAGRAMS = 1;
/** A super-frame of TCP: to be handed on as it is, with its header. */
export const FRAME_OF_SEGMENTS = 2;

/** Ethernet with a tag, IPv6 and UDP. */
const SAVED_HEADERS = new Uint8Array(ETHERNET_BYTES + VLAN_TAG_BYTES + IPV6_BYTES + UDP_BYTES);

/** Does what is missing to the frame behind the header at `header`, and says what it is. `length` counts the frame alone. */
export function completeFrame(bytes: Uint8Array, header: number, frame: number, length: number): number {
  const gsoType = bytes[header + 1] & 0x7f;
  if (gsoType === GSO_UDP_L4) return FRAME_OF_DATAGRAMS;
  if (gsoType !== GSO_NONE) return FRAME_OF_SEGMENTS;
  if ((bytes[header] & NEEDS_CHECKSUM) !== 0) {
    const start = littleU16(bytes, header + 6);
    completeChecksum(bytes, frame, length, start, littleU16(bytes, header + 8));
  }
  return FRAME_WHOLE;
}

/** The field holds the sum of the pseudo-header; the rest from `start` on is added. UDP over IPv4 does without: the ICRC covers more. */
function completeChecksum(bytes: Uint8Array, frame: number, length: number, start: number, offset: number): void {
  if (start + offset + 2 > length) return;
  const field = frame + start + offset;
  if (offset === UDP_CHECKSUM_OFFSET && ipVersion(bytes, frame) === 4) {
    writeU16(bytes, field, 0);
    return;
  }
  const checksum = finishChecksum(addWords(bytes, frame + start, length - start, 0));
  writeU16(bytes, field, checksum === 0 && offset === UDP_CHECKSUM_OFFSET ? 0xffff : checksum);
}

/**
 * Hands the datagrams of a super-frame to `take`, one frame after another, as the kernel would cut them: identifications count up over IPv4. Each frame is
 * made in front of its payload, in place of what has been taken before it, so that nothing is copied but headers.
 */
export function splitDatagrams(
  bytes: Uint8Array,
  header: number,
  frame: number,
  length: number,
  take: (frame: number, length: number) => void,
): void {
  const ip = frame + ipOffset(bytes, frame);
  const isV4 = bytes[ip] >> 4 === 4;
  const udp = ip + (isV4 ? IPV4_BYTES : IPV6_BYTES);
  const payload = udp + UDP_BYTES;
  const segmentBytes = littleU16(bytes, header + 4);
  const headerBytes = payload - frame;
  const total = length - headerBytes;
  if (segmentBytes === 0 || total <= 0) return;
  const firstId = readU16(bytes, ip + 4);
  // Short datagrams: the place of the second header overlaps the first.
  for (let i = 0; i < headerBytes; i++) SAVED_HEADERS[i] = bytes[frame + i];
  for (let done = 0, index = 0; done < total; done += segmentBytes, index++) {
    const at = frame + done;
    if (index > 0) for (let i = 0; i < headerBytes; i++) bytes[at + i] = SAVED_HEADERS[i];
    const payloadBytes = Math.min(segmentBytes, total - done);
    const udpBytes = UDP_BYTES + payloadBytes;
    const ownIp = at + (ip - frame);
    const ownUdp = at + (udp - frame);
    writeU16(bytes, ownUdp + 4, udpBytes);
    if (isV4) {
      writeU16(bytes, ownIp + 2, IPV4_BYTES + udpBytes);
      writeU16(bytes, ownIp + 4, firstId + index);
      refreshIpv4Checksum(bytes, ownIp);
      writeU16(bytes, ownUdp + 6, 0);
    } else {
      writeU16(bytes, ownIp + 4, udpBytes);
      writeUdpChecksumV6(bytes, ownIp, ownUdp);
    }
    take(at, headerBytes + payloadBytes);
  }
}

function ipOffset(bytes: Uint8Array, frame: number): number {
  return readU16(bytes, frame + 12) === ETHERTYPE_VLAN ? ETHERNET_BYTES + VLAN_TAG_BYTES : ETHERNET_BYTES;
}

function ipVersion(bytes: Uint8Array, frame: number): number {
  return bytes[frame + ipOffset(bytes, frame)] >> 4;
}

function littleU16(bytes: Uint8Array, at: number): number {
  return bytes[at] | (bytes[at + 1] << 8);
}
