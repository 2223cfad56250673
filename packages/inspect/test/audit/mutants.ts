/** For each rule a capture in which one packet breaks it. */

import { readU16, readU24, readU32, writeU16, writeU24, writeU32 } from '../../../../src/core/bytes.js';
import {
  CNP,
  RC_ACK,
  RC_ATOMIC_WRITE,
  RC_FLUSH,
  RC_READ_REQUEST,
  RC_READ_RESPONSE_FIRST,
  RC_READ_RESPONSE_LAST,
  RC_SEND_FIRST,
  RC_SEND_LAST,
  RC_SEND_MIDDLE,
  RC_SEND_ONLY,
  RC_SEND_ONLY_IMM,
  RC_WRITE_FIRST,
  RC_WRITE_ONLY,
} from '../../../../src/packet/opcode.js';
import type { CapturedPacket } from '../../../../src/port/capture/captured-packet.js';
import { cmReply, cmRequest, conversation, type Turn } from './conversation.js';
import { Frame, golden } from './golden.js';

type Edit = (frame: Frame) => Frame | Uint8Array | undefined;

/** A golden capture with the `nth` packet of an opcode changed (0: the first, -1: the last) and its ICRC repaired. */
function changed(name: string, opcode: number, nth: number, edit: Edit): CapturedPacket[] {
  const packets = golden(name);
  const places = packets.flatMap(({ bytes }, i) => (new Frame(bytes).opcode === opcode ? [i] : []));
  const at = places.at(nth)!;
  const frame = new Frame(packets[at].bytes);
  const result = edit(frame) ?? frame;
  const bytes = result instanceof Uint8Array ? result : result.sealed();
  return packets.map((packet, i) => (i === at ? { ...packet, bytes, originalLength: bytes.length } : packet));
}

/** Adds to the big-endian number of 24 bits. */
function add24(bytes: Uint8Array, at: number, delta: number): void {
  writeU24(bytes, at, (readU24(bytes, at) + delta) & 0xffffff);
}

const set =
  (offset: number, value: number, from: 'ip' | 'udp' | 'bth' = 'bth'): Edit =>
  (frame) => {
    frame.bytes[frame[from] + offset] = value;
    return undefined;
  };

/** Transport of an opcode. */
export const UC = 0x20;

const SEND = 'send-rc-mtu1024-v4';

/** Two small WRITEs, with a READ of half a PSN space between them at the smallest MTU. */
const longRead = (bytes: number): Turn[] => [
  { opcode: RC_SEND_FIRST, psn: 1, bytes: 256 },
  { opcode: RC_SEND_LAST, psn: 2, bytes: 4, ackReq: true },
  { back: true, opcode: RC_ACK, psn: 2, syndrome: 0x1f, msn: 1 },
  { opcode: RC_READ_REQUEST, psn: 3, dmaLength: bytes },
  { opcode: RC_SEND_ONLY, psn: (3 + Math.ceil(bytes / 256)) & 0xffffff, bytes: 4 },
];

export const numbered = (skip: number): Turn[] =>
  Array.from({ length: 20 }, (_unused, i) => ({
    opcode: RC_SEND_ONLY,
    psn: 100 + i + (i === 19 ? skip : 0),
    bytes: 4,
    ipId: 500 + i,
  }));

const gap = (syndrome: number, psn: number): Turn[] => [
  { opcode: RC_SEND_ONLY, psn: 10, bytes: 4 },
  { opcode: RC_SEND_ONLY, psn: 11, bytes: 4 },
  { opcode: RC_SEND_ONLY, psn: 12, bytes: 4 },
  { back: true, opcode: RC_ACK, psn: 11, syndrome: 0x60, msn: 1 },
  { opcode: RC_SEND_ONLY, psn: 13, bytes: 4 },
  { back: true, opcode: RC_ACK, psn, syndrome, msn: 1 },
];

const reads = (limit: number): Turn[] => [
  cmRequest({ qpn: 0x22, startPsn: 7, responderResources: 1 }),
  cmReply({ qpn: 0x11, startPsn: 50, responderResources: limit }),
  { opcode: RC_READ_REQUEST, psn: 50, dmaLength: 8 },
  { opcode: RC_READ_REQUEST, psn: 51, dmaLength: 8 },
  { back: true, opcode: 0x10, psn: 50, bytes: 8, syndrome: 0x1f, msn: 1 },
  { back: true, opcode: 0x10, psn: 51, bytes: 8, syndrome: 0x1f, msn: 2 },
];

const cnp = (psn: number): Turn[] => [{ opcode: CNP, psn, becn: true }];

/** A copy of the packet that is sent again, with its stamp this long after the first. */
export function sentAgainAfter(ns: bigint): CapturedPacket[] {
  const turns = [
    cmRequest({ qpn: 0x22, startPsn: 7, ackTimeout: 14 }),
    cmReply({ qpn: 0x11, startPsn: 50 }),
    { opcode: RC_SEND_ONLY, psn: 50, bytes: 4, ackReq: true },
    { opcode: RC_SEND_ONLY, psn: 51, bytes: 4, ackReq: true },
    { opcode: RC_SEND_ONLY, psn: 50, bytes: 4, ackReq: true },
  ];
  const packets = conversation(turns);
  return packets.map((packet, i) => (i === 4 ? { ...packet, timestampNs: packets[2].timestampNs + ns } : packet));
}

export const CM = [cmRequest({ qpn: 0x22, startPsn: 7, ackTimeout: 14 }), cmReply({ qpn: 0x11, startPsn: 50 })];
export const send = (psn: number): Turn => ({ opcode: RC_SEND_ONLY, psn, bytes: 4, ackReq: true });
export const answer = (psn: number, syndrome: number, msn: number): Turn => ({
  back: true,
  opcode: RC_ACK,
  psn,
  syndrome,
  msn,
});

/** The responder says that it has room for `credits` more (a code below 5 is a number), and four messages follow. */
const credited = (credits: number): Turn[] => [...CM, send(50), answer(50, credits, 1), ...[51, 52, 53, 54].map(send)];

/** The second of six packets is missing; what follows the NAK. */
const resumed = (...psns: readonly number[]): Turn[] => resumedFrom(306, psns);

/** The same, by packets with identifications from `ipId` on; 306: none is missing. */
export const resumedFrom = (ipId: number, psns: readonly number[]): Turn[] => [
  ...CM,
  ...[50, 51, 52, 53, 54, 55].map((psn, i) => ({ ...send(psn), ipId: 300 + i })),
  answer(51, 0x60, 1),
  ...psns.map((psn, i) => ({ ...send(psn), ipId: ipId + i })),
];

/** A second NAK for a packet that was just sent again. */
const askedTwice = (...psns: readonly number[]): Turn[] => [...resumed(51), answer(51, 0x60, 1), ...psns.map(send)];

/** A READ, then a WRITE that is refused, with the response in the given place. */
export const refused = (isLate: boolean): Turn[] => {
  const response: Turn = { back: true, opcode: 0x10, psn: 50, bytes: 8, syndrome: 0x1f, msn: 1 };
  const nak = answer(51, 0x62, 1);
  return [
    ...CM,
    { opcode: RC_READ_REQUEST, psn: 50, dmaLength: 8 },
    send(51),
    ...(isLate ? [nak, response] : [response, nak]),
  ];
};

const marked = (ecn: number): Turn[] => [
  ...CM,
  { ...send(50), ecn: 2 },
  { ...send(51), ecn },
  { back: true, opcode: CNP, psn: 0, becn: true },
];

/** A MIDDLE that continues nothing, and its answer. */
export const misordered = (syndrome: number): Turn[] => [
  ...CM,
  { ...send(50), ackReq: false },
  { opcode: RC_SEND_MIDDLE, psn: 51, bytes: 1024, ackReq: true },
  answer(51, syndrome, 1),
];

/** A PSN is left out; the answer to the last packet. */
export const skippedAndAnswered = (psn: number, syndrome: number): Turn[] => [
  ...numbered(3),
  answer(psn, syndrome, 19),
];

/** A timeout of 67 ms and two retries: a SEND that nobody answers is sent again at these times. */
export const retried = (...atMs: readonly number[]): Turn[] => [
  cmRequest({ qpn: 0x22, startPsn: 7, ackTimeout: 14, retryCount: 2 }),
  cmReply({ qpn: 0x11, startPsn: 50 }),
  send(50),
  ...atMs.map((at) => ({ ...send(50), atMs: at })),
];

export const CM_TWO_RETRIES = retried();

/** Two RNR retries: a SEND meets RNR NAKs that ask for 10 us (code 1), and comes again after each. */
export const notReady = (naks: number): Turn[] => [
  cmRequest({ qpn: 0x22, startPsn: 7, ackTimeout: 14 }),
  cmReply({ qpn: 0x11, startPsn: 50, rnrRetryCount: 2 }),
  ...Array.from({ length: naks }, () => [send(50), answer(50, 0x21, 0)]).flat(),
  send(50),
];

/** A WRITE with bytes, and one without that is answered in this way. */
export const emptyWrite = (syndrome: number, isBegun = true): Turn[] => {
  const write = (psn: number, bytes: number): Turn => ({
    opcode: RC_WRITE_ONLY,
    psn,
    bytes,
    dmaLength: bytes,
    ackReq: true,
  });
  return [
    ...CM,
    ...(isBegun ? [write(50, 4)] : [send(50)]),
    answer(50, 0x1f, 1),
    write(51, 0),
    answer(51, syndrome, 2),
  ];
};

/** 65 REQs. */
const connections = (qpnOf: (i: number) => number): Turn[] =>
  Array.from({ length: 65 }, (_unused, i) =>
    cmRequest({ qpn: qpnOf(i), startPsn: (i * i * 7919) & 0xffffff, commId: 1 + i }),
  );
const square = (i: number) => (i * i * 104_729) & 0xffffff;

/** An ATOMIC WRITE and a FLUSH after a WRITE, with their answers. */
const placement = (atomicWrite: Partial<Turn> = {}, feth = 1): Turn[] => [
  ...CM,
  { opcode: RC_WRITE_ONLY, psn: 50, bytes: 2, dmaLength: 2 },
  { opcode: RC_ATOMIC_WRITE, psn: 51, bytes: 8, dmaLength: 8, vaLow: 0x1000, ackReq: true, ...atomicWrite },
  { opcode: RC_FLUSH, psn: 52, feth, dmaLength: 4096, ackReq: true },
  { back: true, opcode: 0x10, psn: 51, syndrome: 0x1f, msn: 2 },
  { back: true, opcode: 0x10, psn: 52, syndrome: 0x1f, msn: 3 },
];

export const MUTANTS: Readonly<Record<number, () => CapturedPacket[]>> = {
  1: () => changed(SEND, RC_SEND_ONLY, 0, set(6, 0, 'ip')),
  2: () =>
    changed(SEND, RC_SEND_ONLY, 0, (frame) => {
      writeU16(frame.bytes, frame.ip + 2, readU16(frame.bytes, frame.ip + 2) + 4);
      return undefined;
    }),
  3: () =>
    changed('send-rc-mtu1024-v6', RC_SEND_ONLY, 0, (frame) => {
      writeU16(frame.bytes, frame.ip + 4, readU16(frame.bytes, frame.ip + 4) + 4);
      return undefined;
    }),
  5: () => changed(SEND, RC_SEND_ONLY, -1, set(1, 0x28, 'ip')),
  6: () => changed(SEND, RC_SEND_ONLY, -1, set(1, 0x02, 'ip')),
  7: () => changed(SEND, RC_SEND_ONLY, -1, set(3, 0xb8, 'udp')),
  8: () =>
    changed(SEND, RC_SEND_LAST, 0, (frame) => {
      const end = frame.udp + readU16(frame.bytes, frame.udp + 4);
      writeU16(frame.bytes, frame.udp + 4, end - frame.udp - 4);
      return frame.sealed(end);
    }),
  9: () => changed(SEND, RC_SEND_ONLY, 0, set(6, 0x12, 'udp')),
  10: () => changed(SEND, RC_SEND_ONLY, -1, set(1, 0x01, 'udp')),
  11: () =>
    changed(SEND, RC_ACK, -1, (frame) => {
      frame.sealed();
      frame.bytes[frame.bth + 16] ^= 0x40;
      return frame.bytes;
    }),
  16: () => changed(SEND, RC_ACK, -1, set(1, 0x01)),
  17: () => changed(SEND, RC_ACK, -1, set(1, 0x10)),
  19: () => changed(SEND, RC_SEND_ONLY, 0, set(8, 0x81)),
  23: () => conversation(misordered(0x61)),
  24: () => conversation(misordered(0x1f)),
  25: () => changed('pingpong-rc-v4', RC_SEND_FIRST, 4, (frame) => frame.resized(1020)),
  26: () => changed('pingpong-rc-v4', RC_SEND_LAST, 4, (frame) => frame.resized(0)),
  27: () => changed(SEND, RC_SEND_ONLY_IMM, -1, (frame) => frame.resized(1028, 16)),
  28: () =>
    changed('nak-access-read-rc-v6', RC_READ_REQUEST, 0, (frame) => {
      writeU32(frame.bytes, frame.bth + 24, 0x80000001);
      return undefined;
    }),
  29: () =>
    changed('write-rc-mtu1024-v4', RC_WRITE_FIRST, 0, (frame) => {
      writeU32(frame.bytes, frame.bth + 24, readU32(frame.bytes, frame.bth + 24) + 1);
      return undefined;
    }),
  30: () => changed(SEND, RC_ACK, -1, set(0, 0x15)),
  31: () => changed('pingpong-rc-v4', RC_SEND_FIRST, 4, set(1, 0x80)),
  32: () => changed('pingpong-rc-v4', RC_SEND_FIRST, 4, (frame) => frame.resized(512)),
  33: () => conversation(numbered(3)),
  35: () => conversation(longRead(0x80000000)),
  36: () =>
    changed(SEND, RC_ACK, -1, (frame) => {
      add24(frame.bytes, frame.bth + 9, -4);
      return undefined;
    }),
  40: () =>
    changed(SEND, RC_ACK, 4, (frame) => {
      add24(frame.bytes, frame.bth + 13, 1);
      return undefined;
    }),
  41: () => conversation(credited(0)),
  44: () => conversation(skippedAndAnswered(122, 0x1f)),
  45: () => conversation(gap(0x60, 11)),
  47: () => conversation(resumed(52, 53, 54)),
  49: () => conversation(askedTwice(51, 52)),
  51: () => sentAgainAfter(20_000_000n),
  52: () => sentAgainAfter(400_000_000n),
  54: () => conversation(retried(100, 200, 300)),
  58: () => changed('rnr-nak-rc-v4', RC_ACK, 1, set(12, 0x20)),
  59: () => conversation(notReady(3)),
  61: () => changed('read-rc-mtu1024-v4', RC_READ_RESPONSE_FIRST, 1, set(0, RC_READ_RESPONSE_LAST)),
  62: () => changed('read-rc-mtu1024-v4', RC_READ_RESPONSE_LAST, 1, (frame) => frame.resized(8, 16)),
  63: () => changed('loss-resp-read-rc-v4', RC_READ_REQUEST, -1, set(19, 1)),
  66: () => conversation(reads(1)),
  68: () => conversation(emptyWrite(0x62)),
  80: () => changed(SEND, RC_ACK, 4, set(12, 0x62)),
  81: () => conversation(refused(true)),
  82: () => changed(SEND, RC_ACK, -1, set(12, 0x64)),
  83: () => conversation(marked(2)),
  84: () => conversation(cnp(5)),
  91: () => changed('cm-rping-v4', 0x64, 0, set(22, 1)),
  92: () => changed('cm-reject-v4', 0x64, -1, set(20 + 24 + 11, 13)),
  101: () => conversation(connections((i) => 0x1000 + 2 * i)),
  112: () => conversation(placement({ vaLow: 0x1004 })),
  113: () => conversation(placement({}, 4)),
};

/** What the crafted conversations are before the change: nobody breaks a rule. */
export const SOUND: Readonly<Record<number, () => CapturedPacket[]>> = {
  33: () => conversation(numbered(0)),
  35: () => conversation(longRead(0x7fffff00)),
  41: () => conversation(credited(3)),
  45: () => conversation(gap(0x1f, 10)),
  54: () => conversation(retried(100, 110, 200)),
  59: () => conversation(notReady(2)),
  68: () => conversation(emptyWrite(0x1f)),
  47: () => conversation(resumed(51, 52, 53, 54)),
  49: () => conversation(askedTwice(52, 53)),
  51: () => sentAgainAfter(70_000_000n),
  52: () => sentAgainAfter(250_000_000n),
  66: () => conversation(reads(2)),
  81: () => conversation(refused(false)),
  83: () => conversation(marked(3)),
  84: () => conversation(cnp(0)),
  101: () => conversation(connections(square)),
  112: () => conversation(placement()),
  113: () => conversation(placement({}, 0x13)),
};

/** Where a capture was made, if that matters: at the requester; rule 83 is about the other side. */
export const AT: Readonly<Record<number, string>> = {
  41: '192.0.2.1',
  49: '192.0.2.1',
  51: '192.0.2.1',
  52: '192.0.2.1',
  54: '192.0.2.1',
  59: '192.0.2.1',
  81: '192.0.2.2',
  83: '192.0.2.2',
};

/** What the requester has to break first, so that the responder can: the audit names both. */
export const PROVOKED_BY: Readonly<Record<number, number>> = { 24: 23, 44: 33 };
