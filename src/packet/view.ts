/**
 * Lenient where roce.ts is strict: it reports errors and shows every field that the bytes contain, valid or not.
 * Allocates freely; not for the packet path.
 */

import { toHex } from '../core/bytes.js';
import { RNR_TIMER_NS, SYNDROME_KIND_ACK, SYNDROME_KIND_NAK, SYNDROME_KIND_RNR, syndromeKind } from './aeth.js';
import { trailerBytesOf } from './int-trailer.js';
import {
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
  opcodeName,
} from './opcode.js';
import {
  BTH_BYTES,
  FETH_GLOBAL,
  FETH_LEVEL_MASK,
  FETH_LEVEL_SHIFT,
  FETH_PERSISTENT,
  FETH_PLACEMENT_MASK,
  ICRC_BYTES,
  PARSE_OK,
  PARSE_REASONS,
  parseRoce,
  RocePacket,
  readBth,
  readExtensions,
  selectsRegion,
} from './roce.js';

/** Fields of a header by name, for text and JSON. */
export type HeaderFields = Record<string, string | number | boolean>;

/** Result of {@link describeRoce}. */
export interface RoceDescription {
  /** `ok`, or why the packet would be dropped (see PARSE_REASONS). */
  readonly reason: string;
  /** `RC RDMA_WRITE_FIRST`; `opcode 0x15` where the table has no entry. */
  readonly name: string;
  /** Fields in the order of the wire. Addresses and keys are hex strings. */
  readonly fields: Readonly<HeaderFields>;
  /** Payload without pad; 0 if the lengths are inconsistent. */
  readonly payloadBytes: number;
  /** One line: name, fields, payload, and the reason unless it is `ok`. */
  readonly text: string;
}

const NAK_NAMES: readonly string[] = [
  'PSN_SEQUENCE_ERROR',
  'INVALID_REQUEST',
  'REMOTE_ACCESS_ERROR',
  'REMOTE_OPERATIONAL_ERROR',
  'INVALID_RD_REQUEST',
];

/** `ACK`, `ACK credits 3`, `RNR 0.48 ms`, `NAK REMOTE_ACCESS_ERROR`, or the number where it is reserved. */
export function syndromeName(syndrome: number): string {
  const code = syndrome & 0x1f;
  switch (syndromeKind(syndrome)) {
    case SYNDROME_KIND_ACK:
      return code === 0x1f ? 'ACK' : `ACK credits ${code}`;
    case SYNDROME_KIND_RNR:
      return `RNR ${RNR_TIMER_NS[code] / 1e6} ms`;
    case SYNDROME_KIND_NAK:
      return `NAK ${NAK_NAMES[code] ?? code}`;
    default:
      return `reserved ${hex(syndrome, 2)}`;
  }
}

/** `GLOBAL|PERSISTENT` for the placement type of a FETH; reserved bits as a number. */
export function placementName(feth: number): string {
  const type = feth & FETH_PLACEMENT_MASK;
  const reserved = type & ~(FETH_GLOBAL | FETH_PERSISTENT);
  const names = [
    ...(type & FETH_GLOBAL ? ['GLOBAL'] : []),
    ...(type & FETH_PERSISTENT ? ['PERSISTENT'] : []),
    ...(reserved !== 0 || type === 0 ? [hex(reserved, 1)] : []),
  ];
  return names.join('|');
}

/** `RANGE` or `REGION` for the selectivity level of a FETH; the number where it is reserved. */
export function selectivityName(feth: number): string {
  if (selectsRegion(feth)) return 'REGION';
  const level = (feth >>> FETH_LEVEL_SHIFT) & FETH_LEVEL_MASK;
  return level === 0 ? 'RANGE' : `reserved ${level}`;
}

/** Describes the UDP payload `bytes[offset, offset + length)`, clipped to the array. Never throws. */
export function describeRoce(bytes: Uint8Array, offset: number, length: number): RoceDescription {
  const range = bytes.subarray(offset, offset + Math.max(0, length));
  const packet = new RocePacket();
  const status = parseRoce(range, 0, range.length, packet);
  const reason = PARSE_REASONS[status];
  const name = range.length > 0 ? opcodeName(range[0]) : 'empty';
  const fields = range.length >= BTH_BYTES ? fieldsOf(range, packet) : {};
  if (status === PARSE_OK && packet.info.headers & HDR_SACK) {
    const bitmap = range.subarray(packet.payloadOffset, packet.payloadOffset + packet.payloadBytes);
    Object.assign(fields, { bitmap: toHex(bitmap) });
  }
  if (range.length >= BTH_BYTES + ICRC_BYTES) {
    const end = range.length - trailerBytesOf(range, 0, range.length);
    Object.assign(fields, { icrc: toHex(range.subarray(end - ICRC_BYTES, end)) });
    if (end < range.length) Object.assign(fields, { telemetry: toHex(range.subarray(end)) });
  }
  const payloadBytes = status === PARSE_OK ? packet.payloadBytes : 0;
  const words = Object.entries(fields).map(([key, value]) => `${key}=${value}`);
  const tail = status === PARSE_OK ? [`payload=${payloadBytes}`] : [`(${reason}, ${range.length} bytes)`];
  return { reason, name, fields, payloadBytes, text: [name, ...words, ...tail].join(' ') };
}

function fieldsOf(range: Uint8Array, packet: RocePacket): HeaderFields {
  const known = OPCODES[range[0]];
  readBth(range, 0, known ?? packet.info, packet);
  const fields: HeaderFields = {
    qp: hex(packet.destQpn, 6),
    psn: packet.psn,
    ackReq: packet.ackReq,
    solicited: packet.solicited,
    migReq: packet.migReq,
    pad: packet.padBytes,
    tver: range[1] & 0x0f,
    pkey: hex(packet.pkey, 4),
    fecn: packet.fecn,
    becn: packet.becn,
  };
  if (known !== undefined && range.length >= BTH_BYTES + known.extBytes) {
    readExtensions(range, BTH_BYTES, known.headers, packet);
    addExtensions(known.headers, packet, fields);
  }
  return fields;
}

function addExtensions(headers: number, p: RocePacket, fields: HeaderFields): void {
  const add = (header: number, values: HeaderFields) => {
    if (headers & header) Object.assign(fields, values);
  };
  add(HDR_FETH, { placement: placementName(p.feth), level: selectivityName(p.feth) });
  add(HDR_RETH | HDR_ATOMIC_ETH, { va: hex64(p.vaHigh, p.vaLow), rkey: hex(p.rkey, 8) });
  add(HDR_RETH, { dmaLength: p.dmaLength });
  add(HDR_AETH, { syndrome: syndromeName(p.syndrome), msn: p.msn });
  add(HDR_ATOMIC_ETH, { swapAdd: hex64(p.swapHigh, p.swapLow), compare: hex64(p.compareHigh, p.compareLow) });
  add(HDR_ATOMIC_ACK_ETH, { original: hex64(p.origHigh, p.origLow) });
  add(HDR_DETH, { qkey: hex(p.qkey, 8), sourceQp: hex(p.sourceQpn, 6) });
  add(HDR_IMM, { immediate: hex(p.immediate, 8) });
  add(HDR_IETH, { invalidateRkey: hex(p.invalidateRkey, 8) });
}

function hex(value: number, digits: number): string {
  return `0x${value.toString(16).padStart(digits, '0')}`;
}

function hex64(high: number, low: number): string {
  return hex(high, 8) + low.toString(16).padStart(8, '0');
}
