/**
 * In-band network telemetry (INT) and its echo: a trailer after the ICRC of a packet between two endpoints of this
 * package. The sender of data leaves space, switches on the path write the state of their queues (INT of HPCC, Li et
 * al., SIGCOMM 2019, §4.1; the digest of PINT, Ben Basat et al., SIGCOMM 2020), and the receiver returns it after its
 * next acknowledgement. It is not compatible with the telemetry of any vendor.
 *
 *     BTH (byte 4: bit 0x20 set) ... payload, pad, ICRC | hop records, 5 x 12, or credit, 4 | counts, 12 | tail, 8
 *
 *     hop record   time the packet left, u32 ns | bytes sent by the port before it, u32 | queue it left behind, u16 x 256 bytes | line rate, u16
 *     credit       in data: packets that the sender wants to send after this one, u32; in echoes: packets granted since the beginning, u32
 *     counts       u32 ns between arrival and echo | data packets received, u32 | of them marked CE, u32
 *     tail         time stamp of the sender, u32 ns | kind, 4 bits; marked, 1 bit; hops, 3 bits | digest of PINT, or entropy | 0x5254
 *
 * Hop records are there in the kinds DATA_HOPS and ECHO_HOPS, credit in DATA_CREDIT and its echo, counts in echoes. An
 * echo has the bit `marked` of a data packet that was marked CE, and its way: which of several UDP source ports of the
 * connection it had, where the kind leaves the octet free. All numbers are big-endian; times and counts wrap.
 *
 * The ICRC covers a packet as if it had no trailer: without the trailer and the bit, which the ICRC leaves out (annex
 * A17.3.3), it is the packet of the standard. So switches write to the trailer without touching the ICRC. What is
 * damaged in it costs one wrong sample of a rate control.
 */

import { readU16, readU32, writeU16, writeU32 } from '../core/bytes.js';

/** BTH byte 4: a trailer follows the ICRC. A reserved bit; peers that do not know it need a packet without trailer. */
export const BTH_TRAILER = 0x20;

/**
 * BTH byte 4: the connection uses several UDP source ports, at most {@link ENTROPIES_MAX} in a row. A reserved bit,
 * which the ICRC leaves out; it tells who looks on that the ports belong together.
 */
export const BTH_MULTIPATH = 0x10;
/** Entropies of a connection: what an octet of the trailer can name. */
export const ENTROPIES_MAX = 256;

/** No trailer. */
export const INT_NONE = 0;
/** Data that asks for an echo of its time stamp and of marks. */
export const INT_DATA_TIMES = 1;
/** Data that also has room for the records of {@link INT_HOPS_MAX} hops. */
export const INT_DATA_HOPS = 2;
/** Data that also asks for the digest of PINT. */
export const INT_DATA_DIGEST = 3;
/** Data that also announces the sender's demand: its echo grants credit. */
export const INT_DATA_CREDIT = 4;
/** An echo has the kind of the data and this bit. */
export const INT_ECHO = 8;

/** Hops that a packet has room for; further ones leave no record. HPCC has as many. */
export const INT_HOPS_MAX = 5;
/** Bytes of a hop record. */
export const INT_HOP_BYTES = 12;
const COUNTS_BYTES = 12;
const CREDIT_BYTES = 4;
const TAIL_BYTES = 8;
const MAGIC = 0x5254;
/** Next to the number of hops, in echoes: the data packet was marked. */
const ECHO_MARKED = 8;
const HOPS_MASK = 7;
const QUEUE_UNIT_BYTES = 256;

/** Bytes of a trailer of this kind, 0 where there is no such kind. */
export function intTrailerBytes(kind: number): number {
  switch (kind) {
    case INT_DATA_TIMES:
    case INT_DATA_DIGEST:
      return TAIL_BYTES;
    case INT_DATA_CREDIT:
      return CREDIT_BYTES + TAIL_BYTES;
    case INT_DATA_HOPS:
      return INT_HOPS_MAX * INT_HOP_BYTES + TAIL_BYTES;
    case INT_ECHO | INT_DATA_TIMES:
    case INT_ECHO | INT_DATA_DIGEST:
      return COUNTS_BYTES + TAIL_BYTES;
    case INT_ECHO | INT_DATA_CREDIT:
      return CREDIT_BYTES + COUNTS_BYTES + TAIL_BYTES;
    case INT_ECHO | INT_DATA_HOPS:
      return INT_HOPS_MAX * INT_HOP_BYTES + COUNTS_BYTES + TAIL_BYTES;
    default:
      return 0;
  }
}

/**
 * The kind of the trailer at the end of the UDP payload `bytes[offset, offset + length)`; {@link INT_NONE} without one.
 */
export function readIntKind(bytes: Uint8Array, offset: number, length: number): number {
  if (length < 20 || (bytes[offset + 4] & BTH_TRAILER) === 0) return INT_NONE;
  const end = offset + length;
  return readU16(bytes, end - 2) === MAGIC ? bytes[end - 4] >> 4 : INT_NONE;
}

/** Bytes of the packet's trailer: 0 without one, or where it is longer than the packet. */
export function trailerBytesOf(bytes: Uint8Array, offset: number, length: number): number {
  const trailerBytes = intTrailerBytes(readIntKind(bytes, offset, length));
  return trailerBytes + 16 > length ? 0 : trailerBytes;
}

/**
 * Writes the trailer of a data packet that begins at `packet`, whose ICRC ends at `at`, and that takes `entropy`,
 * 0..255. Returns its end.
 */
export function writeDataTrailer(
  b: Uint8Array,
  packet: number,
  at: number,
  kind: number,
  now: number,
  entropy: number,
): number {
  const end = at + intTrailerBytes(kind);
  b[packet + 4] |= BTH_TRAILER;
  if (kind === INT_DATA_HOPS) b.fill(0, at, end - TAIL_BYTES);
  writeTail(b, end, kind, 0, kind === INT_DATA_DIGEST ? 0 : entropy, nanoseconds(now));
  return end;
}

/**
 * Writes an echo behind the ICRC, which ends at `at`, of the packet that begins at `packet`: the content of the data
 * packet's `trailer` of this `kind`, and the counts. Returns its end.
 */
export function writeEchoTrailer(
  b: Uint8Array,
  packet: number,
  at: number,
  kind: number,
  trailer: Uint8Array,
  { residenceNs, received, marked, isMarked, granted }: Readonly<EchoCounts>,
): number {
  const hopBytes = intTrailerBytes(kind) - TAIL_BYTES;
  const end = at + intTrailerBytes(INT_ECHO | kind);
  b[packet + 4] |= BTH_TRAILER;
  for (let i = 0; i < hopBytes; i++) b[at + i] = trailer[i];
  if (kind === INT_DATA_CREDIT) writeU32(b, at, granted);
  for (let i = 0; i < TAIL_BYTES; i++) b[end - TAIL_BYTES + i] = trailer[hopBytes + i];
  b[end - 4] |= (INT_ECHO << 4) | (isMarked ? ECHO_MARKED : 0);
  writeU32(b, end - 20, residenceNs);
  writeU32(b, end - 16, received);
  writeU32(b, end - 12, marked);
  return end;
}

/** How many data packets an echo answers for, and how long the newest of them was held at the receiver. */
export interface EchoCounts {
  /** Time between the arrival of the newest data packet and its echo, ns, at most 2^32 - 1. */
  residenceNs: number;
  /** Data packets with trailer that have arrived, modulo 2^32. */
  received: number;
  /** Of them marked CE, modulo 2^32. */
  marked: number;
  /** The newest one was. */
  isMarked: boolean;
  /** Packets that the receiver has granted, modulo 2^32; 0 in kinds without credit. */
  granted: number;
}

/**
 * Writes into the data trailer of kind {@link INT_DATA_CREDIT} that ends at `end` how many packets its sender wants to
 * send after this one.
 */
export function writeWanted(b: Uint8Array, end: number, packets: number): void {
  writeU32(b, end - TAIL_BYTES - CREDIT_BYTES, packets);
}

/** What {@link writeWanted} wrote. */
export function readWanted(b: Uint8Array, end: number): number {
  return readU32(b, end - TAIL_BYTES - CREDIT_BYTES);
}

function writeTail(b: Uint8Array, end: number, kind: number, hops: number, digest: number, sentNs: number): void {
  writeU32(b, end - 8, sentNs);
  b[end - 4] = (kind << 4) | hops;
  b[end - 3] = digest;
  writeU16(b, end - 2, MAGIC);
}

/** A time as trailers have it: nanoseconds modulo 2^32. */
export function nanoseconds(now: number): number {
  return Math.floor(now) % 0x1_0000_0000;
}

/** From a time as trailers have it until `now`, less than 2^32 ns ago. */
export function nanosecondsSince(timeNs: number, now: number): number {
  const elapsed = nanoseconds(now) - timeNs;
  return elapsed < 0 ? elapsed + 0x1_0000_0000 : elapsed;
}

/** One hop: what a switch reports when a packet leaves it. */
export interface HopRecord {
  /** When the packet left, ns modulo 2^32 by the clock of the switch. */
  timeNs: number;
  /** Bytes that the port had sent, modulo 2^32. */
  sentBytes: number;
  /** Bytes that stayed in the queue, in steps of 256, at most 16,776,960. */
  queueBytes: number;
  /** Line rate of the port, bits/s, to 4 digits. */
  rateBps: number;
}

/** A record to be filled. */
export function newHopRecord(): HopRecord {
  return { timeNs: 0, sentBytes: 0, queueBytes: 0, rateBps: 0 };
}

/** Adds a record to the packet whose UDP payload ends at `end`, if it has room: kind {@link INT_DATA_HOPS} only. */
export function appendHop(b: Uint8Array, end: number, hop: Readonly<HopRecord>): void {
  const hops = b[end - 4] & HOPS_MASK;
  if (hops >= INT_HOPS_MAX) return;
  const o = end - TAIL_BYTES - (INT_HOPS_MAX - hops) * INT_HOP_BYTES;
  writeU32(b, o, hop.timeNs);
  writeU32(b, o + 4, hop.sentBytes);
  writeU16(b, o + 8, Math.min(0xffff, Math.round(hop.queueBytes / QUEUE_UNIT_BYTES)));
  writeU16(b, o + 10, encodeRate(hop.rateBps));
  b[end - 4]++;
}

function readHop(b: Uint8Array, o: number, hop: HopRecord): void {
  hop.timeNs = readU32(b, o);
  hop.sentBytes = readU32(b, o + 4);
  hop.queueBytes = readU16(b, o + 8) * QUEUE_UNIT_BYTES;
  hop.rateBps = decodeRate(readU16(b, o + 10));
}

/** A rate as a decimal fraction: exponent of 10 in 4 bits, up to 4095 in 12. Exact for the rates that links have. */
export function encodeRate(rateBps: number): number {
  let exponent = 0;
  let digits = rateBps;
  while (digits > 4095 || (exponent < 15 && digits >= 10 && digits % 10 === 0)) {
    digits /= 10;
    exponent++;
  }
  return (exponent << 12) | Math.round(digits);
}

/** Bits/s of {@link encodeRate}. */
export function decodeRate(code: number): number {
  return (code & 0xfff) * 10 ** (code >> 12);
}

/** Sets the digest to `digest` if it is larger than the one there: PINT keeps the maximum of all hops. */
export function raiseDigest(b: Uint8Array, end: number, digest: number): void {
  if (digest > b[end - 3]) b[end - 3] = digest;
}

/** U = 2^-6 * 1.05^code: the logarithmic code of PINT with base (1 + 0.025)^2, one byte. */
const DIGEST_BASE = 1.05;
const DIGEST_LEAST = 2 ** -6;

/**
 * The code of a utilization; `fraction`, 0 to 1 and random, rounds it so that the mean is right, 0.5 to the nearest.
 */
export function encodeDigest(utilization: number, fraction: number): number {
  if (!(utilization > DIGEST_LEAST)) return 0;
  return Math.min(255, Math.floor(Math.log(utilization / DIGEST_LEAST) / Math.log(DIGEST_BASE) + fraction));
}

/** The utilization of a code. */
export function decodeDigest(code: number): number {
  return DIGEST_LEAST * DIGEST_BASE ** code;
}

/**
 * The entropy of the data packet that the trailer ending at `end` echoes; -1: it is no echo, or of a kind that has no
 * room for an entropy value.
 */
export function echoedEntropy(b: Uint8Array, end: number): number {
  const kind = b[end - 4] >> 4;
  return (kind & INT_ECHO) === 0 || kind === (INT_ECHO | INT_DATA_DIGEST) ? -1 : b[end - 3];
}

/** That data packet was marked CE. */
export function isEchoMarked(b: Uint8Array, end: number): boolean {
  return (b[end - 4] & ECHO_MARKED) !== 0;
}

/** An echo for the sender of data. Made once and reused for every echo. */
export class IntEcho implements EchoCounts {
  /** The kind of the data packet, {@link INT_DATA_TIMES} to {@link INT_DATA_DIGEST}. */
  kind: number = INT_NONE;
  /** When the newest data packet had been sent, ns modulo 2^32 by the clock of its sender. */
  sentNs = 0;
  /** Time between its arrival and the echo. */
  residenceNs = 0;
  /** Data packets with trailer that have arrived, modulo 2^32. */
  received = 0;
  /** Of them marked CE, modulo 2^32. */
  marked = 0;
  isMarked = false;
  granted = 0;
  /** Digest of the newest one. */
  digest = 0;
  /** Records in {@link hops}, in path order. */
  hopCount = 0;
  /** The entropy of the newest data packet. */
  readonly hops: readonly HopRecord[] = Array.from({ length: INT_HOPS_MAX }, newHopRecord);

  /** Reads the trailer that ends at `end`. False where it is no echo, or its fields contradict each other. */
  read(b: Uint8Array, end: number): boolean {
    const kind = b[end - 4] >> 4;
    const hopCount = b[end - 4] & HOPS_MASK;
    if ((kind & INT_ECHO) === 0 || hopCount > INT_HOPS_MAX) return false;
    this.kind = kind & ~INT_ECHO;
    if (this.kind !== INT_DATA_HOPS && hopCount !== 0) return false;
    this.hopCount = hopCount;
    this.digest = b[end - 3];
    this.sentNs = readU32(b, end - 8);
    this.residenceNs = readU32(b, end - 20);
    this.received = readU32(b, end - 16);
    this.marked = readU32(b, end - 12);
    this.isMarked = isEchoMarked(b, end);
    const first = end - intTrailerBytes(kind);
    this.granted = this.kind === INT_DATA_CREDIT ? readU32(b, first) : 0;
    for (let i = 0; i < hopCount; i++) readHop(b, first + i * INT_HOP_BYTES, this.hops[i]);
    return true;
  }
}
