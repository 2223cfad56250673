/**
 * Completes frames from a packet socket as a network card would: missing checksums and super-frames (virtio
 * specification 1.2, §5.1.6: `struct virtio_net_hdr`, packet(7)). Frames of virtual links (veth, tap) come unfinished.
 */

import { readU16, writeU16 } from '../core/bytes.js';
import { addWords, finishChecksum } from '../packet/checksum.js';
import { ETHERNET_BYTES, ETHERTYPE_VLAN, VLAN_TAG_BYTES } from '../packet/ethernet.js';
import { IPV4_BYTES, refreshIpv4Checksum } from '../packet/ipv4.js';
import { IPV6_BYTES } from '../packet/ipv6.js';
import { UDP_BYTES, writeUdpChecksumV6 } from '../packet/udp.js';

export const VNET_HEADER_BYTES = 10;
const NEEDS_CHECKSUM = 1;
const GSO_NONE = 0;
const GSO_UDP_L4 = 5;
const UDP_CHECKSUM_OFFSET = 6;

export const FRAME_WHOLE = 0;
export const FRAME_OF_DATAGRAMS = 1;
export const FRAME_OF_SEGMENTS = 2;

const SAVED_HEADERS = new Uint8Array(ETHERNET_BYTES + VLAN_TAG_BYTES + IPV6_BYTES + UDP_BYTES);

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

/**
 * The field holds the pseudo-header sum; the rest from `start` on is added. UDP over IPv4 needs none: the ICRC covers
 * more.
 */
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
 * Passes the datagrams of a super-frame to `take`, one frame after another, segmented as by the kernel: identifications
 * count up over IPv4. Each frame is made in front of its payload and overwrites earlier data, so that only headers are
 * copied.
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
  // Short datagrams: the second header overlaps the first.
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
