/**
 * A packet that breaks one of them so that a receiver would drop it goes no further, because it changes nothing at the
 * receiver.
 */

import type { PacketView } from 'rocev2/internal/capture';
import { readU16, toHex } from 'rocev2/internal/core';
import {
  ATOMIC_BYTES,
  addWords,
  BTH_BYTES,
  BTH_MULTIPATH,
  BTH_TRAILER,
  finishChecksum,
  HDR_AETH,
  HDR_RETH,
  ICRC_BYTES,
  IP_PROTOCOL_UDP,
  OP_CNP,
  opcodeName,
  PARSE_OK,
  PARSE_REASONS,
  PLACE_FIRST,
  PLACE_MIDDLE,
  parseRoce,
  type RocePacket,
  SYNDROME_KIND_NAK,
  SYNDROME_KIND_RESERVED,
  syndromeKind,
  syndromeName,
  UDP_BYTES,
} from 'rocev2/internal/packet';
import type { Ledger } from './ledger.js';
import { carriedIcrc, computedIcrc } from './packet-icrc.js';

const MESSAGE_BYTES_MAX = 0x80000000;
/** NAK codes 0x60..0x63; 0x64 is of reliable datagrams, the others are reserved. */
const NAK_CODES_RC = 4;
const CNP_RESERVED_BYTES = 16;
/** Of a FETH: the placement types that are defined, and the selectivity levels 0 and 1. */
const FETH_PLACEMENTS = 0x03;
const FETH_LEVELS = 0x10;

/** Opcodes of IBTA that the table of packet/opcode.ts does not have: RD, XRC. */
function isForeignOpcode(opcode: number): boolean {
  const transport = opcode >> 5;
  return transport === 2 || transport === 5 || transport >= 6;
}

export const PACKET_SOUND = 0;
export const PACKET_DROPPED = 1;
export const PACKET_FOREIGN = 2;
export const PACKET_CUT = 3;

export class PacketRules {
  readonly #ledger: Ledger;
  readonly #flowName: (view: PacketView) => string;
  #whole = new Uint8Array(0);

  constructor(ledger: Ledger, flowName: (view: PacketView) => string) {
    this.#ledger = ledger;
    this.#flowName = flowName;
  }

  /** `isCorrect`: the ICRC was found to be correct at the end that both lengths name. */
  check(seen: PacketView, isCorrect: boolean): number {
    this.#checkIpHeader(seen);
    const end = this.#checkLengths(seen);
    if (end < 0) return PACKET_DROPPED;
    this.#checkChecksum(seen);
    const start = seen.udp + UDP_BYTES;
    const isCut = end > seen.bytes.length;
    if (isCorrect) this.#ledger.pass(11);
    else if (!isCut && !this.#checkIcrc(seen, end)) return PACKET_DROPPED;
    const bytes = isCut ? this.#filled(seen, end) : seen.bytes;
    const reason = parseRoce(bytes, start, end - start, seen.packet);
    if (reason !== PARSE_OK) return this.#checkMalformed(seen, end, PARSE_REASONS[reason]);
    if (start + BTH_BYTES + seen.packet.info.extBytes > seen.bytes.length) return PACKET_CUT;
    this.#ledger.pass(16);
    this.#ledger.pass(17);
    this.#ledger.pass(30);
    this.#checkFields(seen, seen.packet, start);
    return PACKET_SOUND;
  }

  #violation(rule: number, seen: PacketView, text: string): void {
    this.#ledger.violation({ rule, packets: [seen.number], flow: this.#flowName(seen), text });
  }

  #checkIpHeader(seen: PacketView): void {
    if (seen.family === 6) {
      if (seen.hasExtensionHeaders) {
        this.#violation(3, seen, 'extension headers between IPv6 and UDP; expected next header 17 (UDP)');
      }
    } else if (seen.hasOptions || !seen.isWhole) {
      const what = seen.hasOptions ? 'the IPv4 header has options' : 'DF is not set, or the packet is a fragment';
      this.#violation(1, seen, `${what}; expected header length 5, DF set, fragment offset 0`);
    } else this.#ledger.pass(1);
  }

  /** Returns where the packet ends, or -1 where it cannot be one. */
  #checkLengths(seen: PacketView): number {
    const { ipEnd, udpEnd, family, bytes } = seen;
    const ofIp = family === 4 ? 2 : 3;
    const shortest = seen.udp + UDP_BYTES + BTH_BYTES + ICRC_BYTES;
    if (ipEnd === udpEnd) {
      this.#ledger.pass(ofIp);
      this.#ledger.pass(8);
      if (udpEnd >= shortest) return udpEnd;
      this.#violation(30, seen, `a UDP payload of ${udpEnd - seen.udp - UDP_BYTES} bytes has no room for BTH and ICRC`);
      return -1;
    }
    const isRight = (end: number) =>
      end >= shortest && end <= bytes.length && computedIcrc(bytes, seen, end) === carriedIcrc(bytes, seen, end);
    const lengths = `the IP length ends at byte ${ipEnd - seen.ip}, the UDP length at byte ${udpEnd - seen.ip} of the packet`;
    if (isRight(ipEnd)) {
      this.#violation(8, seen, `${lengths}; the ICRC is right for the first`);
      return ipEnd;
    }
    const udpIsRight = isRight(udpEnd);
    this.#violation(ofIp, seen, `${lengths}; expected both at the end of the ICRC`);
    return udpIsRight ? udpEnd : -1;
  }

  #checkChecksum(seen: PacketView): void {
    const { bytes, udp, udpEnd, family, ip } = seen;
    const carried = readU16(bytes, udp + 6);
    if (carried === 0) {
      this.#ledger.pass(9);
      return;
    }
    if (udpEnd > bytes.length) return;
    if (seen.isOfTrain) {
      const text = 'segmentation offload has merged this packet with others, whose common checksum is not its own';
      this.#ledger.cannotTell({ rule: 9, packets: [seen.number], flow: this.#flowName(seen), text });
      return;
    }
    const length = udpEnd - udp;
    const [addresses, addressBytes] = family === 4 ? [ip + 12, 8] : [ip + 8, 32];
    const pseudo = addWords(bytes, addresses, addressBytes, IP_PROTOCOL_UDP + length);
    if (finishChecksum(addWords(bytes, udp, length, pseudo)) === 0) {
      this.#ledger.pass(9);
      return;
    }
    const packets = [seen.number];
    if ((~finishChecksum(pseudo) & 0xffff) === carried) {
      const text = 'the checksum holds the sum of the pseudo-header only: the NIC completes it behind the capture';
      this.#ledger.cannotTell({ rule: 9, packets, flow: this.#flowName(seen), text });
    } else this.#violation(9, seen, `the UDP checksum 0x${carried.toString(16)} is wrong; expected 0 or the right one`);
  }

  #checkIcrc(seen: PacketView, end: number): boolean {
    const computed = computedIcrc(seen.bytes, seen, end);
    const carried = carriedIcrc(seen.bytes, seen, end);
    if (computed === carried) {
      this.#ledger.pass(11);
      return true;
    }
    // As it is on the wire: the least significant byte first, like `rocev2 icrc` and Wireshark.
    const wire = (value: number) => toHex(Uint8Array.of(value, value >>> 8, value >>> 16, value >>> 24));
    this.#violation(11, seen, `the packet carries the ICRC ${wire(carried)}; ${wire(computed)} is correct`);
    return false;
  }

  #filled(seen: PacketView, end: number): Uint8Array {
    if (this.#whole.length < end) this.#whole = new Uint8Array(2 * end);
    this.#whole.fill(0, seen.bytes.length, end);
    this.#whole.set(seen.bytes);
    return this.#whole;
  }

  #checkMalformed(seen: PacketView, end: number, reason: string): number {
    const start = seen.udp + UDP_BYTES;
    if (seen.bytes.length < start + BTH_BYTES) return PACKET_CUT;
    const opcode = seen.bytes[start];
    const length = end - start;
    const flags = seen.bytes[start + 1];
    switch (reason) {
      case 'unknown_opcode':
        if (isForeignOpcode(opcode)) return PACKET_FOREIGN;
        this.#violation(30, seen, `opcode 0x${opcode.toString(16)} is reserved`);
        break;
      case 'bad_tver':
        this.#violation(16, seen, `the transport version is ${flags & 15}; expected 0`);
        break;
      case 'bad_length':
      case 'bad_pad':
        this.#violation(
          17,
          seen,
          `pad count ${(flags >> 4) & 3} in a UDP payload of ${length} bytes; expected a payload with pad that is a multiple of 4 and not shorter than its pad`,
        );
        break;
      case 'bad_sack':
        return PACKET_FOREIGN;
      default:
        this.#violation(30, seen, `${opcodeName(opcode)} in a UDP payload of ${length} bytes: ${REASONS[reason]}`);
    }
    return PACKET_DROPPED;
  }

  #checkFields(seen: PacketView, packet: RocePacket, start: number): void {
    const { info } = packet;
    // Includes the bits of our trailers and of connections with several source ports.
    const ours = packet.trailerBytes === 0 ? BTH_MULTIPATH : BTH_TRAILER | BTH_MULTIPATH;
    const reserved = packet.resv6 & ~ours;
    if (reserved !== 0 || packet.resv7 !== 0) {
      this.#violation(19, seen, `reserved bits are ${reserved} in byte 4 and ${packet.resv7} in byte 8; expected 0`);
    } else this.#ledger.pass(19);
    if (info.place === PLACE_FIRST || info.place === PLACE_MIDDLE) {
      if (packet.solicited)
        this.#violation(31, seen, `${info.name} has Solicited Event set; expected it on LAST or ONLY`);
      else this.#ledger.pass(31);
    }
    if ((info.headers & HDR_RETH) !== 0) {
      if (packet.dmaLength > MESSAGE_BYTES_MAX) {
        this.#violation(28, seen, `the RETH says ${packet.dmaLength} bytes; expected at most 2147483648`);
      } else this.#ledger.pass(28);
    }
    if (info.name === 'ATOMIC_WRITE') this.#checkAtomicWrite(seen, packet);
    if (info.name === 'FLUSH') this.#checkFeth(seen, packet);
    if ((info.headers & HDR_AETH) !== 0) this.#checkSyndrome(seen, packet);
    if (info.kind === OP_CNP) this.#checkCnp(seen, packet, start);
  }

  #checkAtomicWrite(seen: PacketView, { payloadBytes, dmaLength, vaLow }: RocePacket): void {
    const isAligned = (vaLow & (ATOMIC_BYTES - 1)) === 0;
    if (payloadBytes === ATOMIC_BYTES && dmaLength === ATOMIC_BYTES && isAligned) this.#ledger.pass(112);
    else {
      const place = isAligned ? '' : ' to an address that is no multiple of 8';
      const text = `an ATOMIC WRITE carries ${payloadBytes} bytes${place}, and its RETH says ${dmaLength}; expected 8 of both, aligned`;
      this.#violation(112, seen, text);
    }
  }

  #checkFeth(seen: PacketView, { feth }: RocePacket): void {
    if ((feth & FETH_PLACEMENTS) !== 0 && (feth & ~(FETH_PLACEMENTS | FETH_LEVELS)) === 0) this.#ledger.pass(113);
    else {
      const text = `the FETH is 0x${feth.toString(16)}; expected placement types 1 and 2, level 0 or 1, and no other bits`;
      this.#violation(113, seen, text);
    }
  }

  #checkSyndrome(seen: PacketView, { syndrome }: RocePacket): void {
    const kind = syndromeKind(syndrome);
    const isReserved =
      kind === SYNDROME_KIND_RESERVED || (kind === SYNDROME_KIND_NAK && (syndrome & 0x1f) >= NAK_CODES_RC);
    if (!isReserved) this.#ledger.pass(82);
    else {
      const text = `the syndrome is 0x${syndrome.toString(16)} (${syndromeName(syndrome)}); expected ACK, RNR NAK, or NAK 0x60 to 0x63`;
      this.#violation(82, seen, text);
    }
  }

  #checkCnp(seen: PacketView, packet: RocePacket, start: number): void {
    const wrong: string[] = [];
    if (packet.psn !== 0) wrong.push(`PSN ${packet.psn}`);
    if (packet.solicited) wrong.push('Solicited Event');
    if (packet.migReq) wrong.push('MigReq');
    if (packet.ackReq) wrong.push('AckReq');
    if (!packet.becn) wrong.push('no BECN');
    const reserved = seen.bytes.subarray(start + BTH_BYTES, start + BTH_BYTES + CNP_RESERVED_BYTES);
    if (reserved.some((byte) => byte !== 0)) wrong.push('reserved bytes that are not 0');
    if (wrong.length === 0) this.#ledger.pass(84);
    else this.#violation(84, seen, `a CNP with ${wrong.join(', ')}; expected BECN, and everything else 0`);
  }
}

const REASONS: Readonly<Record<string, string>> = {
  too_short: 'it is too short for the headers of this opcode',
  unexpected_payload: 'this opcode has no payload',
};
