/**
 * Fields of a RoCE packet that a fault rule can give another value: BTH and extension headers by name (IBTA vol. 1 §9.2 and §9.3).
 *
 * The ICRC is repaired by the difference: CRC is linear, so that neither the IP header nor the identification has to be known, and an ICRC that was
 * wrong stays wrong.
 */

import { crc32 } from '../../core/crc32.js';
import { trailerBytesOf } from '../../packet/int-trailer.js';
import {
  HDR_AETH,
  HDR_ATOMIC_ACK_ETH,
  HDR_ATOMIC_ETH,
  HDR_DETH,
  HDR_IETH,
  HDR_IMM,
  HDR_RETH,
  OPCODES,
} from '../../packet/opcode.js';
import {
  AETH_BYTES,
  ATOMIC_ACK_ETH_BYTES,
  ATOMIC_ETH_BYTES,
  BTH_BYTES,
  DETH_BYTES,
  ICRC_BYTES,
  IETH_BYTES,
  IMM_BYTES,
  RETH_BYTES,
} from '../../packet/roce.js';

/** Where a field stands. */
interface Field {
  /** HDR_ bits of the headers that have it; 0: the BTH. */
  readonly headers: number;
  /** Bits from the start of its header. */
  readonly at: number;
  readonly bits: number;
}

const FIELDS: ReadonlyMap<string, Field> = new Map(
  (
    [
      ['opcode', 0, 0, 8],
      ['solicited', 0, 8, 1],
      ['migreq', 0, 9, 1],
      ['pad', 0, 10, 2],
      ['tver', 0, 12, 4],
      ['pkey', 0, 16, 16],
      ['fecn', 0, 32, 1],
      ['becn', 0, 33, 1],
      ['qpn', 0, 40, 24],
      ['ackreq', 0, 64, 1],
      ['psn', 0, 72, 24],
      ['va', HDR_RETH | HDR_ATOMIC_ETH, 0, 64],
      ['rkey', HDR_RETH | HDR_ATOMIC_ETH, 64, 32],
      ['dmalen', HDR_RETH, 96, 32],
      ['syndrome', HDR_AETH, 0, 8],
      ['msn', HDR_AETH, 8, 24],
      ['swap', HDR_ATOMIC_ETH, 96, 64],
      ['compare', HDR_ATOMIC_ETH, 160, 64],
      ['original', HDR_ATOMIC_ACK_ETH, 0, 64],
      ['qkey', HDR_DETH, 0, 32],
      ['srcqpn', HDR_DETH, 40, 24],
      ['imm', HDR_IMM, 0, 32],
      ['invalidate', HDR_IETH, 0, 32],
    ] as const
  ).map(([name, headers, at, bits]) => [name, { headers, at, bits }]),
);

/** Extension headers in the order in which they stand in a packet. */
const HEADERS: ReadonlyArray<readonly [number, number]> = [
  [HDR_RETH, RETH_BYTES],
  [HDR_AETH, AETH_BYTES],
  [HDR_ATOMIC_ETH, ATOMIC_ETH_BYTES],
  [HDR_ATOMIC_ACK_ETH, ATOMIC_ACK_ETH_BYTES],
  [HDR_DETH, DETH_BYTES],
  [HDR_IMM, IMM_BYTES],
  [HDR_IETH, IETH_BYTES],
];

/** What becomes of one field. */
export interface FieldChange {
  /** Where it stands. */
  readonly field: Field;
  /** Whether `value` is added, modulo the size of the field, or stored. */
  readonly adds: boolean;
  /** What is stored, or added; negative to subtract. */
  readonly value: bigint;
}

/** Parses a field's name and `16`, `0x10`, `+1` or `-1`. Throws an Error that says what is wrong. */
export function parseFieldChange(name: string, text: string): FieldChange {
  const field = FIELDS.get(name);
  if (field === undefined) {
    throw new Error(`rewrites the unknown field '${name}': use one of ${[...FIELDS.keys()].join(', ')}`);
  }
  const parts = /^([+-]?)(\d+|0x[0-9a-f]+)$/i.exec(text);
  const value = parts === null ? 0n : BigInt(parts[2]);
  if (parts === null || value >> BigInt(field.bits) !== 0n) {
    throw new Error(`cannot rewrite ${name} by '${text}': use VALUE, +VALUE or -VALUE of at most ${field.bits} bits`);
  }
  return { field, adds: parts[1] !== '', value: parts[1] === '-' ? -value : value };
}

/** Whether packets of an opcode have the field. */
export function hasField(opcode: number, { headers }: Field): boolean {
  return headers === 0 || ((OPCODES[opcode]?.headers ?? 0) & headers) !== 0;
}

/** Changes the field in `bytes[offset, offset + length)`, BTH to ICRC, and repairs the ICRC. Does nothing to a packet without the field. */
export function changeField(change: FieldChange, bytes: Uint8Array, offset: number, length: number): void {
  const { field, adds, value } = change;
  const at = startOf(field, bytes[offset]);
  const end = length - trailerBytesOf(bytes, offset, length) - ICRC_BYTES;
  const last = at + (((field.at & 7) + field.bits - 1) >> 3) + (field.at >> 3);
  if (at < 0 || last >= end) return;
  const covered = bytes.subarray(offset, offset + end);
  const congestion = covered[4];
  covered[4] = 0xff; // which the ICRC takes it for
  const before = crc32(covered);
  covered[4] = congestion;
  const old = readBits(bytes, 8 * (offset + at) + field.at, field.bits);
  writeBits(bytes, 8 * (offset + at) + field.at, field.bits, adds ? old + value : value);
  const rewritten = covered[4];
  covered[4] = 0xff;
  const difference = before ^ crc32(covered);
  covered[4] = rewritten;
  for (let i = 0; i < ICRC_BYTES; i++) bytes[offset + end + i] ^= difference >>> (8 * i);
}

/** Where the header of a field begins, from the BTH on; -1 without it. */
function startOf({ headers }: Field, opcode: number): number {
  if (headers === 0) return 0;
  const present = OPCODES[opcode]?.headers ?? 0;
  let at = BTH_BYTES;
  for (const [header, size] of HEADERS) {
    if ((present & header) === 0) continue;
    if ((headers & header) !== 0) return at;
    at += size;
  }
  return -1;
}

function readBits(bytes: Uint8Array, first: number, count: number): bigint {
  let value = 0n;
  for (let bit = first; bit < first + count; bit++) {
    value = (value << 1n) | BigInt((bytes[bit >> 3] >> (7 - (bit & 7))) & 1);
  }
  return value;
}

/** Stores the low bits of `value`, also of a negative one. */
function writeBits(bytes: Uint8Array, first: number, count: number, value: bigint): void {
  let rest = BigInt.asUintN(count, value);
  for (let bit = first + count - 1; bit >= first; bit--) {
    const mask = 0x80 >> (bit & 7);
    if ((rest & 1n) === 1n) bytes[bit >> 3] |= mask;
    else bytes[bit >> 3] &= ~mask;
    rest >>= 1n;
  }
}
