/**
 * A second opinion on the packet format: slow, plain, on DataView and BigInt, with an opcode list of its own and the CRC of
 * buffer-crc32. Shares nothing with src/packet.
 */

import * as bufferCrc32Module from 'buffer-crc32';

// The package's declarations say `export =`, its ES module has a default export.
const bufferCrc32 = (bufferCrc32Module as unknown as { default: { unsigned(bytes: Buffer): number } }).default;

/** CRC-32 by a table of single bytes. */
export function naiveCrc32(bytes: Uint8Array): number {
  return bufferCrc32.unsigned(Buffer.from(bytes));
}

type HeaderName = 'feth' | 'reth' | 'aeth' | 'atomic' | 'atomicAck' | 'deth' | 'imm' | 'ieth' | 'zero16' | 'bitmap';

/** How long the payload may be: any, none, or (SACK) a bitmap. */
export interface NaiveOpcode {
  opcode: number;
  headers: HeaderName[];
  payload: 'any' | 'none' | 'bitmap';
}

const sendWrite: Array<[number, HeaderName[]]> = [
  [0, []],
  [1, []],
  [2, []],
  [3, ['imm']],
  [4, []],
  [5, ['imm']],
  [6, ['reth']],
  [7, []],
  [8, []],
  [9, ['imm']],
  [10, ['reth']],
  [11, ['reth', 'imm']],
];

export const NAIVE_OPCODES: NaiveOpcode[] = [
  ...sendWrite.map(([op, headers]) => ({ opcode: op, headers, payload: 'any' as const })),
  { opcode: 0x0c, headers: ['reth'], payload: 'none' },
  { opcode: 0x0d, headers: ['aeth'], payload: 'any' },
  { opcode: 0x0e, headers: [], payload: 'any' },
  { opcode: 0x0f, headers: ['aeth'], payload: 'any' },
  { opcode: 0x10, headers: ['aeth'], payload: 'any' },
  { opcode: 0x11, headers: ['aeth'], payload: 'none' },
  { opcode: 0x12, headers: ['aeth', 'atomicAck'], payload: 'none' },
  { opcode: 0x13, headers: ['atomic'], payload: 'none' },
  { opcode: 0x14, headers: ['atomic'], payload: 'none' },
  { opcode: 0x16, headers: ['ieth'], payload: 'any' },
  { opcode: 0x17, headers: ['ieth'], payload: 'any' },
  { opcode: 0x1c, headers: ['feth', 'reth'], payload: 'none' },
  { opcode: 0x1d, headers: ['reth'], payload: 'any' },
  ...sendWrite.map(([op, headers]) => ({ opcode: 0x20 + op, headers, payload: 'any' as const })),
  { opcode: 0x64, headers: ['deth'], payload: 'any' },
  { opcode: 0x65, headers: ['deth', 'imm'], payload: 'any' },
  { opcode: 0x81, headers: ['zero16'], payload: 'none' },
  { opcode: 0xd1, headers: ['aeth', 'bitmap'], payload: 'bitmap' },
  { opcode: 0xd2, headers: [], payload: 'none' },
  { opcode: 0xd3, headers: [], payload: 'none' },
];

export interface NaiveFields {
  opcode: number;
  solicited: boolean;
  migReq: boolean;
  pkey: number;
  fecn: boolean;
  becn: boolean;
  resv6: number;
  destQpn: number;
  ackReq: boolean;
  resv7: number;
  psn: number;
  feth: number;
  va: bigint;
  rkey: number;
  dmaLength: number;
  syndrome: number;
  msn: number;
  swap: bigint;
  compare: bigint;
  orig: bigint;
  qkey: number;
  sourceQpn: number;
  immediate: number;
  invalidateRkey: number;
}

/** BTH .. pad. */
export function naiveEncode(f: NaiveFields, payload: Uint8Array): Uint8Array {
  const known = NAIVE_OPCODES.find((entry) => entry.opcode === f.opcode);
  if (known === undefined) throw new Error(`unknown opcode ${f.opcode}`);
  const view = new DataView(new ArrayBuffer(12 + 64 + payload.length + 3));
  const pad = (4 - (payload.length % 4)) % 4;
  view.setUint8(0, f.opcode);
  view.setUint8(1, (f.solicited ? 128 : 0) + (f.migReq ? 64 : 0) + pad * 16);
  view.setUint16(2, f.pkey);
  view.setUint32(4, ((f.fecn ? 128 : 0) + (f.becn ? 64 : 0) + f.resv6) * 2 ** 24 + f.destQpn);
  view.setUint32(8, ((f.ackReq ? 128 : 0) + f.resv7) * 2 ** 24 + f.psn);
  let at = 12;
  const u32 = (value: number) => {
    view.setUint32(at, value);
    at += 4;
  };
  const u64 = (value: bigint) => {
    view.setBigUint64(at, value);
    at += 8;
  };
  for (const header of known.headers) {
    if (header === 'feth') u32(f.feth);
    else if (header === 'reth') {
      u64(f.va);
      u32(f.rkey);
      u32(f.dmaLength);
    } else if (header === 'aeth') u32(f.syndrome * 2 ** 24 + f.msn);
    else if (header === 'atomic') {
      u64(f.va);
      u32(f.rkey);
      u64(f.swap);
      u64(f.compare);
    } else if (header === 'atomicAck') u64(f.orig);
    else if (header === 'deth') {
      u32(f.qkey);
      u32(f.sourceQpn);
    } else if (header === 'imm') u32(f.immediate);
    else if (header === 'ieth') u32(f.invalidateRkey);
    else if (header === 'zero16') at += 16;
  }
  const bytes = new Uint8Array(view.buffer);
  bytes.set(payload, at);
  return bytes.slice(0, at + payload.length + pad);
}

/** The ICRC of an IP packet without its ICRC, bit by bit as the annex says; as a number. */
export function naiveIcrc(ipPacket: Uint8Array): number {
  const bytes = Uint8Array.from(ipPacket);
  const v4 = bytes[0] >> 4 === 4;
  const udp = v4 ? 20 : 40;
  if (v4) for (const at of [1, 8, 10, 11]) bytes[at] = 0xff;
  else {
    bytes[0] |= 0x0f;
    for (const at of [1, 2, 3, 7]) bytes[at] = 0xff;
  }
  for (const at of [6, 7, 12]) bytes[udp + at] = 0xff;
  return naiveCrc32(Buffer.concat([Buffer.alloc(8, 0xff), bytes]));
}

/** An IP packet around `udpPayload`; the checksums are left zero, as the ICRC does not see them. */
export function naiveIpPacket(
  source: Uint8Array,
  destination: Uint8Array,
  sourcePort: number,
  destinationPort: number,
  ipId: number,
  udpPayload: Uint8Array,
): Uint8Array {
  const v4 = source.length === 4;
  const udp = v4 ? 20 : 40;
  const view = new DataView(new ArrayBuffer(udp + 8 + udpPayload.length));
  const bytes = new Uint8Array(view.buffer);
  if (v4) {
    view.setUint8(0, 0x45);
    view.setUint16(2, bytes.length);
    view.setUint16(4, ipId);
    view.setUint16(6, 0x4000);
    view.setUint8(8, 64);
    view.setUint8(9, 17);
  } else {
    view.setUint8(0, 0x60);
    view.setUint16(4, bytes.length - 40);
    view.setUint8(6, 17);
    view.setUint8(7, 64);
  }
  bytes.set(source, v4 ? 12 : 8);
  bytes.set(destination, v4 ? 16 : 24);
  view.setUint16(udp, sourcePort);
  view.setUint16(udp + 2, destinationPort);
  view.setUint16(udp + 4, 8 + udpPayload.length);
  bytes.set(udpPayload, udp + 8);
  return bytes;
}
