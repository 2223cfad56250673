/**
 * Packets that segmentation offload has merged. A host that passes several packets to the kernel in one call
 * (UDP_SEGMENT), or receives them in one (UDP_GRO), records them as one packet in its own captures: an IP header, a UDP
 * header, then the RoCEv2 packets, of which all but the last have the same length. On the wire each has its own
 * headers, with consecutive IPv4 identifications.
 *
 * The headers do not contain that length. The first packet ends where its ICRC is correct. Where no ICRC is correct, as
 * in captures with changed addresses, the BTHs at all ends must continue each other.
 */

import { readU16, readU24, readU32, writeU16 } from '../../core/bytes.js';
import { addWords, finishChecksum } from '../../packet/checksum.js';
import { icrcOfIpPacket } from '../../packet/icrc.js';
import { BTH_TRAILER } from '../../packet/int-trailer.js';
import { IP_PROTOCOL_UDP, refreshIpv4Checksum } from '../../packet/ipv4.js';
import { IPV6_BYTES } from '../../packet/ipv6.js';
import { OPCODES, PLACE_FIRST, PLACE_MIDDLE } from '../../packet/opcode.js';
import { PATH_MTUS } from '../../packet/path-mtu.js';
import { psnDiff } from '../../packet/psn.js';
import { isPspOfRoce, PSP_HEADER_BYTES } from '../../packet/psp.js';
import { BTH_BYTES, ICRC_BYTES } from '../../packet/roce.js';
import { UDP_BYTES } from '../../packet/udp.js';
import type { CapturedPacket, TrainPlace } from './captured-packet.js';
import { PacketView, SEEN } from './packet-view.js';

const TRAILER_BYTES_MAX = 128;
/** Payload of the largest path MTU, headers, ICRC and trailer. */
const PACKET_BYTES_MAX = 4096 + 256;
/** Between two packets of a queue pair in one train; READ requests skip the PSNs of their responses. */
const PSN_STEP_MAX = 0x1_0000;
const INSEPARABLE: TrainPlace = { index: 0, count: 0 };

const scratch = new PacketView();

/** The packets in an entry of a capture; the entry itself unless it is a train to one of these UDP ports. */
export function separated(captured: CapturedPacket, ports: { has(port: number): boolean }): readonly CapturedPacket[] {
  if (captured.train !== undefined) return [captured];
  if (scratch.read(captured, 0, 0) !== SEEN.UDP || !ports.has(scratch.destinationPort)) return [captured];
  return (hasCorrectIcrc(scratch) ? undefined : splitTrain(captured, scratch)) ?? [captured];
}

function hasCorrectIcrc({ bytes, ip, udp, ipEnd, udpEnd, isCut, hasNoLength }: PacketView): boolean {
  if (isCut || hasNoLength || ipEnd !== udpEnd || udpEnd < udp + UDP_BYTES + BTH_BYTES + ICRC_BYTES) return false;
  const { computed, carried } = icrcOfIpPacket(bytes.subarray(ip, ipEnd), udp - ip);
  return computed === carried;
}

/**
 * The packets of a train, for an entry without a correct ICRC as a whole. Undefined if it is one packet. One entry with
 * `train.count` 0 where the capture does not show where packets end.
 */
function splitTrain(captured: CapturedPacket, view: PacketView): readonly CapturedPacket[] | undefined {
  const { bytes, udp, udpEnd, ipEnd, isCut } = view;
  const start = udp + UDP_BYTES;
  const wireBytes = Math.max(udpEnd, ipEnd) - start;
  const heldBytes = Math.min(bytes.length - start, wireBytes);
  if (heldBytes < BTH_BYTES) return undefined;
  const train = { captured, view, start, wireBytes, heldBytes };
  const length = isPspOfRoce(bytes, start, heldBytes) ? pspPacketBytes(train) : packetBytes(train);
  if (length > 0) {
    const count = Math.ceil(wireBytes / length);
    const shown = Math.ceil(heldBytes / length);
    return Array.from({ length: shown }, (_, index) => packetOf(train, length, { index, count }));
  }
  const isMerged = wireBytes > PACKET_BYTES_MAX || (isCut && !canBeOne(bytes, start, wireBytes));
  return isMerged ? [{ ...captured, train: INSEPARABLE }] : undefined;
}

interface Train {
  readonly captured: CapturedPacket;
  readonly view: PacketView;
  /** First byte of the UDP payload. */
  readonly start: number;
  /** Payload as it was sent, and the part of it in the file. */
  readonly wireBytes: number;
  readonly heldBytes: number;
}

/** 0 if none fits. */
function packetBytes(train: Train): number {
  const { view, wireBytes } = train;
  // Some captures have the lengths of one packet, or none, where the NIC fills them in.
  if (view.udpEnd !== view.ipEnd || view.hasNoLength) {
    for (const length of [view.udpEnd - train.start, wireBytes]) if (isSoundAt(train, length)) return length;
  }
  for (const length of boundaries(train)) if (isSoundAt(train, length)) return length;
  for (const length of boundaries(train)) if (continues(train, length)) return length;
  return 0;
}

function* boundaries({ view: { bytes }, start, heldBytes }: Train): Generator<number> {
  const pkey = readU16(bytes, start + 2);
  const last = Math.min(heldBytes - BTH_BYTES, PACKET_BYTES_MAX);
  for (let length = BTH_BYTES + ICRC_BYTES; length <= last; length++) {
    const at = start + length;
    if (readU16(bytes, at + 2) === pkey && isBth(bytes, at)) yield length;
  }
}

function isBth(bytes: Uint8Array, at: number): boolean {
  return (bytes[at + 1] & 0x0f) === 0 && OPCODES[bytes[at]] !== undefined;
}

function isSoundAt(train: Train, length: number): boolean {
  if (length < BTH_BYTES + ICRC_BYTES || length > train.heldBytes) return false;
  return isSound(packetOf(train, length, { index: 0, count: 1 }).bytes, train.view);
}

function isSound(bytes: Uint8Array, { ip, udp }: PacketView): boolean {
  const { computed, carried } = icrcOfIpPacket(bytes.subarray(ip), udp - ip);
  return computed === carried;
}

function continues({ view: { bytes }, start, heldBytes }: Train, length: number): boolean {
  for (let at = length; at + BTH_BYTES <= heldBytes; at += length) {
    const [before, here] = [start + at - length, start + at];
    if (!isBth(bytes, here) || readU24(bytes, here + 5) !== readU24(bytes, before + 5)) return false;
    const step = psnDiff(readU24(bytes, here + 9), readU24(bytes, before + 9));
    if (step < 0 || step > PSN_STEP_MAX) return false;
  }
  return true;
}

/** Protected packets: the same association and key, and consecutive counters. */
function pspPacketBytes({ view: { bytes }, start, heldBytes }: Train): number {
  const fits = (length: number) => {
    for (let at = length; at + PSP_HEADER_BYTES <= heldBytes; at += length) {
      const [before, here] = [start + at - length, start + at];
      if (readU32(bytes, here + 4) !== readU32(bytes, before + 4)) return false;
      if (readU32(bytes, here) !== readU32(bytes, before)) return false;
      if (readU32(bytes, here + 12) !== (readU32(bytes, before + 12) + 1) >>> 0) return false;
    }
    return true;
  };
  const last = Math.min(heldBytes - PSP_HEADER_BYTES, PACKET_BYTES_MAX);
  for (let length = 2 * PSP_HEADER_BYTES; length <= last; length++) if (fits(length)) return length;
  return 0;
}

/** For a packet that the capture has cut: whether its opcode allows this length. */
function canBeOne(bytes: Uint8Array, start: number, wireBytes: number): boolean {
  const info = OPCODES[bytes[start]];
  if (info === undefined || (info.place !== PLACE_FIRST && info.place !== PLACE_MIDDLE)) return true;
  const payloadBytes = wireBytes - BTH_BYTES - info.extBytes - ICRC_BYTES;
  const trailerBytesMax = (bytes[start + 4] & BTH_TRAILER) === 0 ? 0 : TRAILER_BYTES_MAX;
  return PATH_MTUS.some((mtu) => payloadBytes >= mtu && payloadBytes <= mtu + trailerBytesMax);
}

function packetOf(train: Train, length: number, place: TrainPlace): CapturedPacket {
  const { captured, view, start, wireBytes, heldBytes } = train;
  const from = place.index * length;
  const ofPacket = Math.min(length, wireBytes - from);
  const held = Math.min(ofPacket, heldBytes - from);
  const bytes = new Uint8Array(start + held);
  bytes.set(view.bytes.subarray(0, start));
  bytes.set(view.bytes.subarray(start + from, start + from + held), start);
  writeLengths(bytes, view, ofPacket);
  writeChecksum(bytes, view, ofPacket);
  if (view.family === 4 && place.index > 0) {
    writeId(bytes, view, place.index);
    // Receivers also merge packets that all have one identification.
    if (held === ofPacket && !isSound(bytes, view)) {
      writeId(bytes, view, 0);
      if (!isSound(bytes, view)) writeId(bytes, view, place.index);
    }
  }
  const comment = place.index === 0 ? captured.comment : undefined;
  return { ...captured, bytes, originalLength: start + ofPacket, comment, train: place };
}

function writeLengths(bytes: Uint8Array, { ip, udp, family }: PacketView, payloadBytes: number): void {
  const end = udp + UDP_BYTES + payloadBytes;
  writeU16(bytes, udp + 4, end - udp);
  if (family === 4) {
    writeU16(bytes, ip + 2, end - ip);
    refreshIpv4Checksum(bytes, ip);
  } else writeU16(bytes, ip + 4, end - ip - IPV6_BYTES);
}

function writeId(bytes: Uint8Array, { ip, ipId }: PacketView, step: number): void {
  writeU16(bytes, ip + 4, (ipId + step) & 0xffff);
  refreshIpv4Checksum(bytes, ip);
}

/** Of the pseudo-header, as in a packet whose checksum the NIC completes; none if the train has none. */
function writeChecksum(bytes: Uint8Array, { ip, udp, family }: PacketView, payloadBytes: number): void {
  if (readU16(bytes, udp + 6) === 0) return;
  const [addresses, addressBytes] = family === 4 ? [ip + 12, 8] : [ip + 8, 32];
  const sum = finishChecksum(addWords(bytes, addresses, addressBytes, IP_PROTOCOL_UDP + UDP_BYTES + payloadBytes));
  writeU16(bytes, udp + 6, ~sum & 0xffff);
}
