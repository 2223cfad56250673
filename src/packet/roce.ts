/**
 * RoCEv2 packets, BTH .. ICRC: what is in a UDP payload (IBTA vol. 1 §9.2..9.3, annex A17).
 *
 * The parser is strict and total: for any bytes it returns a reason and reads nothing outside its range. It
 * checks a packet's form only; path MTU, keys, PSNs and the ICRC are checked elsewhere. Neither it nor the writers
 * allocate. Byte order is big-endian; 64-bit fields are two 32-bit halves.
 */

import { readU16, readU24, readU32, writeU16, writeU24, writeU32 } from '../core/bytes.js';
import { BTH_TRAILER, trailerBytesOf } from './int-trailer.js';
import {
  CNP,
  HDR_AETH,
  HDR_ATOMIC_ACK_ETH,
  HDR_ATOMIC_ETH,
  HDR_DETH,
  HDR_FETH,
  HDR_IETH,
  HDR_IMM,
  HDR_RETH,
  HDR_SACK,
  OPCODES,
  type OpcodeInfo,
  PLACE_NONE,
  RC_SEND_ONLY,
} from './opcode.js';

/** Length of the base transport header. */
export const BTH_BYTES = 12;
/** Length of the invariant CRC after the payload. */
export const ICRC_BYTES = 4;
/** Length of the FLUSH extended header. */
export const FETH_BYTES = 4;
/** Placement type of a FETH, bits 3..0: earlier data are visible to all that read the memory. */
export const FETH_GLOBAL = 1;
/** Placement type of a FETH: earlier data are in persistent memory. */
export const FETH_PERSISTENT = 2;
/** Bits of the placement type. */
export const FETH_PLACEMENT_MASK = 0x0f;
/** The selectivity level is at bits 5..4 of a FETH: 0 for the range of the RETH, 1 for the whole memory region. */
export const FETH_LEVEL_SHIFT = 4;
/** Bits of the selectivity level, after the shift. */
export const FETH_LEVEL_MASK = 3;
/** Selectivity level of a FETH: the whole memory region; the range of the RETH does not matter. */
export const FETH_REGION = 1;
/** Length of the RDMA extended header. */
export const RETH_BYTES = 16;
/** Length of the ACK extended header. */
export const AETH_BYTES = 4;
/** Length of the atomic extended header. */
export const ATOMIC_ETH_BYTES = 28;
/** Length of the atomic ACK extended header. */
export const ATOMIC_ACK_ETH_BYTES = 8;
/** Length of the datagram extended header. */
export const DETH_BYTES = 8;
/** Length of immediate data. */
export const IMM_BYTES = 4;
/** Length of the invalidate extended header. */
export const IETH_BYTES = 4;
/** Bytes of the number that an atomic operation reads and changes (IBTA vol. 1 §9.4.5). */
export const ATOMIC_BYTES = 8;
/** The longest bitmap of a SACK: 1024 PSNs. */
export const SACK_BITMAP_BYTES_MAX = 128;

/**
 * Bytes of a UD receive before its data: the IPv6 header, or 20 zero bytes and the IPv4 header (IBTA vol. 1 §11.4.1.2,
 * annex A17).
 */
export const GRH_BYTES = 40;

/** Flags of BTH byte 1. */
export const BTH_SOLICITED = 0x80;
/** BTH byte 1: path migration state. */
export const BTH_MIGREQ = 0x40;
/** The pad count is at bits 5..4 of BTH byte 1. */
export const BTH_PAD_SHIFT = 4;
/** BTH byte 4: forward and backward congestion notification. */
export const BTH_FECN = 0x80;
/** BTH byte 4: backward notification, set in a CNP. */
export const BTH_BECN = 0x40;

/** The default partition, as a full member: the only P_Key that RoCEv2 has. */
export const PKEY_DEFAULT = 0xffff;

/** The packet is well formed; its ICRC is not checked yet. */
export const PARSE_OK = 0;
const TOO_SHORT = 1;
const UNKNOWN_OPCODE = 2;
const BAD_TVER = 3;
const BAD_LENGTH = 4;
const BAD_PAD = 5;
const UNEXPECTED_PAYLOAD = 6;
const BAD_SACK = 7;

/** What {@link parseRoce} returns, by index. Names are stable: they are counter names. */
export const PARSE_REASONS: readonly string[] = [
  'ok',
  'too_short',
  'unknown_opcode',
  'bad_tver',
  'bad_length',
  'bad_pad',
  'unexpected_payload',
  'bad_sack',
];

const NO_INFO = OPCODES[RC_SEND_ONLY]!;

/**
 * One parsed packet; allocated once and refilled for every packet. Fields of extension headers that the packet does not
 * have keep the values of an earlier packet: `info.headers` gives the valid ones.
 */
export class RocePacket {
  /** BTH byte 0. */
  opcode = 0;
  /** The row of the opcode table: how to read the rest. */
  info: OpcodeInfo = NO_INFO;
  /** Solicited event: requests a completion event at the receiver. */
  solicited = false;
  /** The migration bit. */
  migReq = false;
  /** Bytes 0..3 behind the payload that make its length a multiple of 4. */
  padBytes = 0;
  /** Partition key, 16 bits. */
  pkey = 0;
  /** Forward congestion notification. */
  fecn = false;
  /** Backward congestion notification. */
  becn = false;
  /** The reserved bits of BTH bytes 4 and 8, kept so that a packet can be written again as it was. */
  resv6 = 0;
  /** Low seven bits of BTH byte 8, kept as `resv6` is. */
  resv7 = 0;
  /** The receiving queue pair, 24 bits. */
  destQpn = 0;
  /** The sender requests an acknowledgement. */
  ackReq = false;
  /** Packet sequence number, 24 bits. */
  psn = 0;
  /** FETH: placement type and selectivity level. */
  feth = 0;
  /** RETH and AtomicETH: virtual address and key. */
  vaHigh = 0;
  /** Bits 31..0 of the virtual address. */
  vaLow = 0;
  /** RETH and AtomicETH: the key to the memory, 32 bits. */
  rkey = 0;
  /** RETH: bytes of the whole message. */
  dmaLength = 0;
  /** AETH. */
  syndrome = 0;
  /** AETH: message sequence number, 24 bits. */
  msn = 0;
  /** AtomicETH: swap or add operand, and compare operand. */
  swapHigh = 0;
  /** Bits 31..0 of the swap or add operand. */
  swapLow = 0;
  /** Bits 63..32 of the compare operand. */
  compareHigh = 0;
  /** Bits 31..0 of the compare operand. */
  compareLow = 0;
  /** AtomicAckETH: the value before the operation. */
  origHigh = 0;
  /** Bits 31..0 of the value before. */
  origLow = 0;
  /** DETH. */
  qkey = 0;
  /** DETH: the sending queue pair, 24 bits. */
  sourceQpn = 0;
  /** ImmDt, as a big-endian number. */
  immediate = 0;
  /** IETH. */
  invalidateRkey = 0;
  /** Where the payload begins, in the array that was parsed. */
  payloadOffset = 0;
  /** Payload without pad. The bitmap is the payload of a SACK. */
  payloadBytes = 0;
  /** Bytes after the ICRC: see int-trailer.ts. 0 without a trailer. */
  trailerBytes = 0;
  /** Where the trailer begins, in the array that was parsed. */
  trailerOffset = 0;
}

/**
 * Parses the UDP payload `bytes[offset, offset + length)` into `out`. Returns {@link PARSE_OK} or an index into
 * {@link PARSE_REASONS}; `out` is meaningless unless OK. Never throws.
 */
export function parseRoce(bytes: Uint8Array, offset: number, length: number, out: RocePacket): number {
  if (length < BTH_BYTES + ICRC_BYTES) return TOO_SHORT;
  const opcode = bytes[offset];
  const info = OPCODES[opcode];
  if (info === undefined) return UNKNOWN_OPCODE;
  const flags = bytes[offset + 1];
  if ((flags & 0x0f) !== 0) return BAD_TVER;
  const headers = info.headers;
  out.trailerBytes = (bytes[offset + 4] & BTH_TRAILER) === 0 ? 0 : trailerBytesOf(bytes, offset, length);
  out.trailerOffset = offset + length - out.trailerBytes;
  const paddedBytes = length - out.trailerBytes - BTH_BYTES - ICRC_BYTES - info.extBytes;
  if (paddedBytes < 0) return TOO_SHORT;
  if ((paddedBytes & 3) !== 0) return (headers & HDR_SACK) !== 0 ? BAD_SACK : BAD_LENGTH;
  const padBytes = (flags >> BTH_PAD_SHIFT) & 3;
  if (padBytes > paddedBytes) return BAD_PAD;
  if ((headers & HDR_SACK) !== 0) {
    if (padBytes !== 0 || paddedBytes === 0 || paddedBytes > SACK_BITMAP_BYTES_MAX) return BAD_SACK;
  } else if (info.place === PLACE_NONE && paddedBytes !== 0) return UNEXPECTED_PAYLOAD;

  readBth(bytes, offset, info, out);
  if (headers !== 0) readExtensions(bytes, offset + BTH_BYTES, headers, out);
  out.payloadOffset = offset + BTH_BYTES + info.extBytes;
  out.payloadBytes = paddedBytes - padBytes;
  return PARSE_OK;
}

/** Reads the twelve bytes of a BTH without checking them. */
export function readBth(b: Uint8Array, o: number, info: OpcodeInfo, out: RocePacket): void {
  const flags = b[o + 1];
  const congestion = b[o + 4];
  const ackByte = b[o + 8];
  out.opcode = b[o];
  out.info = info;
  out.solicited = (flags & BTH_SOLICITED) !== 0;
  out.migReq = (flags & BTH_MIGREQ) !== 0;
  out.padBytes = (flags >> BTH_PAD_SHIFT) & 3;
  out.pkey = readU16(b, o + 2);
  out.fecn = (congestion & BTH_FECN) !== 0;
  out.becn = (congestion & BTH_BECN) !== 0;
  out.resv6 = congestion & 0x3f;
  out.destQpn = readU24(b, o + 5);
  out.ackReq = (ackByte & 0x80) !== 0;
  out.resv7 = ackByte & 0x7f;
  out.psn = readU24(b, o + 9);
}

/** Reads the extension headers from `start` on; they are in the order of their bits in opcode.ts. */
export function readExtensions(b: Uint8Array, start: number, headers: number, out: RocePacket): void {
  let o = start;
  if ((headers & HDR_FETH) !== 0) {
    out.feth = readU32(b, o);
    o += FETH_BYTES;
  }
  if ((headers & HDR_RETH) !== 0) {
    out.vaHigh = readU32(b, o);
    out.vaLow = readU32(b, o + 4);
    out.rkey = readU32(b, o + 8);
    out.dmaLength = readU32(b, o + 12);
    o += RETH_BYTES;
  }
  if ((headers & HDR_AETH) !== 0) {
    out.syndrome = b[o];
    out.msn = readU24(b, o + 1);
    o += AETH_BYTES;
  }
  if ((headers & HDR_ATOMIC_ETH) !== 0) {
    out.vaHigh = readU32(b, o);
    out.vaLow = readU32(b, o + 4);
    out.rkey = readU32(b, o + 8);
    out.swapHigh = readU32(b, o + 12);
    out.swapLow = readU32(b, o + 16);
    out.compareHigh = readU32(b, o + 20);
    out.compareLow = readU32(b, o + 24);
    o += ATOMIC_ETH_BYTES;
  }
  if ((headers & HDR_ATOMIC_ACK_ETH) !== 0) {
    out.origHigh = readU32(b, o);
    out.origLow = readU32(b, o + 4);
    o += ATOMIC_ACK_ETH_BYTES;
  }
  if ((headers & HDR_DETH) !== 0) {
    out.qkey = readU32(b, o);
    out.sourceQpn = readU24(b, o + 5);
    o += DETH_BYTES;
  }
  if ((headers & HDR_IMM) !== 0) {
    out.immediate = readU32(b, o);
    o += IMM_BYTES;
  }
  if ((headers & HDR_IETH) !== 0) out.invalidateRkey = readU32(b, o);
}

/**
 * Writes a BTH with the default P_Key and reserved bits zero. `flagsByte` is {@link BTH_SOLICITED} | {@link BTH_MIGREQ}
 * | pad << {@link BTH_PAD_SHIFT}. Like all writers here it returns the offset after what it wrote.
 */
export function writeBth(
  b: Uint8Array,
  o: number,
  opcode: number,
  flagsByte: number,
  destQpn: number,
  ackReq: boolean,
  psn: number,
): number {
  b[o] = opcode;
  b[o + 1] = flagsByte;
  writeU16(b, o + 2, PKEY_DEFAULT);
  b[o + 4] = 0;
  writeU24(b, o + 5, destQpn);
  b[o + 8] = ackReq ? 0x80 : 0;
  writeU24(b, o + 9, psn);
  return o + BTH_BYTES;
}

/** Whether a FETH asks for something: placement types and a selectivity level that are defined. */
export function isFethDefined(feth: number): boolean {
  const placement = feth & FETH_PLACEMENT_MASK;
  const level = (feth >>> FETH_LEVEL_SHIFT) & FETH_LEVEL_MASK;
  return placement !== 0 && (placement & ~(FETH_GLOBAL | FETH_PERSISTENT)) === 0 && level <= FETH_REGION;
}

/** Whether a FETH asks for the whole memory region; the range of the RETH does not matter. */
export function selectsRegion(feth: number): boolean {
  return ((feth >>> FETH_LEVEL_SHIFT) & FETH_LEVEL_MASK) === FETH_REGION;
}

/** Writes a FETH: placement type and selectivity level as one number. */
export function writeFeth(b: Uint8Array, o: number, feth: number): number {
  writeU32(b, o, feth);
  return o + FETH_BYTES;
}

/** Writes a RETH: 64-bit address in halves, key, length in bytes. */
export function writeReth(
  b: Uint8Array,
  o: number,
  vaHigh: number,
  vaLow: number,
  rkey: number,
  dmaLength: number,
): number {
  writeU32(b, o, vaHigh);
  writeU32(b, o + 4, vaLow);
  writeU32(b, o + 8, rkey);
  writeU32(b, o + 12, dmaLength);
  return o + RETH_BYTES;
}

/** Writes an AETH at `o`: syndrome and 24-bit MSN. Returns the offset after it, as all these do. */
export function writeAeth(b: Uint8Array, o: number, syndrome: number, msn: number): number {
  b[o] = syndrome;
  writeU24(b, o + 1, msn);
  return o + AETH_BYTES;
}

/** Writes an AtomicETH: 64-bit address and operands in halves. */
export function writeAtomicEth(
  b: Uint8Array,
  o: number,
  vaHigh: number,
  vaLow: number,
  rkey: number,
  swapHigh: number,
  swapLow: number,
  compareHigh: number,
  compareLow: number,
): number {
  writeU32(b, o, vaHigh);
  writeU32(b, o + 4, vaLow);
  writeU32(b, o + 8, rkey);
  writeU32(b, o + 12, swapHigh);
  writeU32(b, o + 16, swapLow);
  writeU32(b, o + 20, compareHigh);
  writeU32(b, o + 24, compareLow);
  return o + ATOMIC_ETH_BYTES;
}

/** Writes an AtomicAckETH: the 64-bit number as it was before, in halves. */
export function writeAtomicAckEth(b: Uint8Array, o: number, high: number, low: number): number {
  writeU32(b, o, high);
  writeU32(b, o + 4, low);
  return o + ATOMIC_ACK_ETH_BYTES;
}

/** Writes an ImmDt: 32 bits of immediate data, big-endian. */
export function writeImm(b: Uint8Array, o: number, value: number): number {
  writeU32(b, o, value);
  return o + IMM_BYTES;
}

/** Writes an IETH: the key that the receiver shall invalidate. */
export function writeIeth(b: Uint8Array, o: number, rkey: number): number {
  writeU32(b, o, rkey);
  return o + IETH_BYTES;
}

/** Writes a DETH: Q_Key and the sender’s QPN. */
export function writeDeth(b: Uint8Array, o: number, qkey: number, sourceQpn: number): number {
  writeU32(b, o, qkey);
  b[o + 4] = 0;
  writeU24(b, o + 5, sourceQpn);
  return o + DETH_BYTES;
}

/** The fields of a packet to make. Omitted fields are zero or false; the P_Key is 0xffff. */
export type RoceFields = {
  /** An opcode of the table. */
  readonly opcode: number;
} & Partial<Readonly<Omit<RocePacket, 'opcode' | 'info' | 'padBytes' | 'payloadOffset' | 'payloadBytes'>>>;

/**
 * Makes a packet, BTH .. pad (no ICRC), for tests and tools; the fast path uses the writers. A parsed
 * {@link RocePacket} and its payload give the bytes it was parsed from. Throws a RangeError for an opcode that is not
 * in the table.
 */
export function emitRoce(fields: RoceFields, payload: Uint8Array = new Uint8Array(0)): Uint8Array {
  const info = OPCODES[fields.opcode];
  if (info === undefined) throw new RangeError(`opcode ${fields.opcode} is not in the table`);
  const headers = info.headers;
  const padBytes = -payload.length & 3;
  const b = new Uint8Array(BTH_BYTES + info.extBytes + payload.length + padBytes);
  const flags = (fields.solicited ? BTH_SOLICITED : 0) | (fields.migReq ? BTH_MIGREQ : 0) | (padBytes << BTH_PAD_SHIFT);
  let o = writeBth(b, 0, info.opcode, flags, fields.destQpn ?? 0, fields.ackReq ?? false, fields.psn ?? 0);
  writeU16(b, 2, fields.pkey ?? PKEY_DEFAULT);
  b[4] = (fields.fecn ? BTH_FECN : 0) | (fields.becn ? BTH_BECN : 0) | (fields.resv6 ?? 0);
  b[8] |= fields.resv7 ?? 0;

  const { vaHigh = 0, vaLow = 0, rkey = 0, swapHigh = 0, swapLow = 0, compareHigh = 0, compareLow = 0 } = fields;
  if (headers & HDR_FETH) o = writeFeth(b, o, fields.feth ?? 0);
  if (headers & HDR_RETH) o = writeReth(b, o, vaHigh, vaLow, rkey, fields.dmaLength ?? 0);
  if (headers & HDR_AETH) o = writeAeth(b, o, fields.syndrome ?? 0, fields.msn ?? 0);
  if (headers & HDR_ATOMIC_ETH) {
    o = writeAtomicEth(b, o, vaHigh, vaLow, rkey, swapHigh, swapLow, compareHigh, compareLow);
  }
  if (headers & HDR_ATOMIC_ACK_ETH) o = writeAtomicAckEth(b, o, fields.origHigh ?? 0, fields.origLow ?? 0);
  if (headers & HDR_DETH) o = writeDeth(b, o, fields.qkey ?? 0, fields.sourceQpn ?? 0);
  if (headers & HDR_IMM) o = writeImm(b, o, fields.immediate ?? 0);
  if (headers & HDR_IETH) o = writeIeth(b, o, fields.invalidateRkey ?? 0);
  b.set(payload, BTH_BYTES + info.extBytes);
  return b;
}

/** Writes a whole CNP except its ICRC (annex A17.9.3): BECN set, PSN 0, sixteen reserved zero bytes. */
export function writeCnp(b: Uint8Array, o: number, destQpn: number): number {
  const next = writeBth(b, o, CNP, 0, destQpn, false, 0);
  b[o + 4] = BTH_BECN;
  b.fill(0, next, next + 16);
  return next + 16;
}
