/**
 * Fields that a fault rule can rewrite: BTH and extension headers (IBTA vol. 1 §9.2 and §9.3). The ICRC is repaired by
 * the difference, because CRC is linear, so a wrong ICRC stays wrong.
 */

import { crc32 } from '../../core/crc32.js';
import { trailerBytesOf } from '../../packet/int-trailer.js';
import {
  HDR_AETH,
  HDR_ATOMIC_ACK_ETH,
  HDR_ATOMIC_ETH,
  HDR_DETH,
  HDR_FETH,
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
  FETH_BYTES,
  ICRC_BYTES,
  IETH_BYTES,
  IMM_BYTES,
  RETH_BYTES,
} from '../../packet/roce.js';

interface Field {
  readonly headers: number;
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
      ['feth', HDR_FETH, 0, 32],
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

const HEADERS: ReadonlyArray<readonly [number, number]> = [
  [HDR_FETH, FETH_BYTES],
  [HDR_RETH, RETH_BYTES],
  [HDR_AETH, AETH_BYTES],
  [HDR_ATOMIC_ETH, ATOMIC_ETH_BYTES],
  [HDR_ATOMIC_ACK_ETH, ATOMIC_ACK_ETH_BYTES],
  [HDR_DETH, DETH_BYTES],
  [HDR_IMM, IMM_BYTES],
  [HDR_IETH, IETH_BYTES],
];

export interface FieldChange {
  readonly field: Field;
  readonly adds: boolean;
  readonly value: bigint;
}

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

export function hasField(opcode: number, { headers }: Field): boolean {
  return headers === 0 || ((OPCODES[opcode]?.headers ?? 0) & headers) !== 0;
}

/** Does nothing to a packet without the field. */
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

function writeBits(bytes: Uint8Array, first: number, count: number, value: bigint): void {
  let rest = BigInt.asUintN(count, value);
  for (let bit = first + count - 1; bit >= first; bit--) {
    const mask = 0x80 >> (bit & 7);
    if ((rest & 1n) === 1n) bytes[bit >> 3] |= mask;
    else bytes[bit >> 3] &= ~mask;
    rest >>= 1n;
  }
}
