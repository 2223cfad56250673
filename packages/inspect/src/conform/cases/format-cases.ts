import { NAK_INVALID_REQUEST, RC_WRITE_ONLY, UC_BASE, UD_SEND_ONLY } from 'rocev2/internal/packet';
import {
  ack,
  data,
  memoryCase,
  type RequestPacket,
  type Step,
  send,
  silence,
  type TestCase,
  testCase,
} from '../step.js';
import { ping, read, write } from './request-packets.js';

const FLAGS = 1;
const ACK_BYTE = 8;
const PSN_LOW = 11;
const KEY_LOW = 27;
const PAYLOAD = 28;
const ICRC_LAST = -1;
const FECN = 0x80;
const RESERVED = 0x3f;

/** The packet is dropped without an answer, and has changed nothing: the next one with its PSN is the first. */
function dropped(packet: Omit<RequestPacket, 'opcode' | 'at'>, opcode = RC_WRITE_ONLY): () => Step[] {
  return () => [send(opcode, 0, packet), silence, ping(0), ack(0, 1)];
}

function taken(packet: Omit<RequestPacket, 'opcode' | 'at'>): () => Step[] {
  return () => [ping(0, packet), ack(0, 1), ping(1), ack(1, 2)];
}

function flipped(name: string, field: string, flip: number): TestCase {
  return { name: `icrc/${name}`, rules: [12], about: `A bit of ${field} is wrong.`, steps: dropped({ flip }) };
}

export const FORMAT_CASES: readonly TestCase[] = [
  flipped('trailer', 'the ICRC', ICRC_LAST),
  flipped('flags', 'byte 1 of the BTH, the pad count and version', FLAGS),
  flipped('ack-request', 'byte 8 of the BTH, which is reserved', ACK_BYTE),
  flipped('psn', 'the PSN', PSN_LOW),
  flipped('reth', 'the length in the RETH', KEY_LOW),
  memoryCase('icrc/payload', [12], 'A bit of the payload of a WRITE is wrong. The memory does not change.', () => [
    write(0, 8, { seed: 1 }),
    ack(0),
    write(1, 8, { seed: 2, flip: PAYLOAD }),
    silence,
    read(1, 8),
    data(1, 8, 1),
  ]),
  testCase('variant/fecn', [13], 'A switch has set FECN, which the ICRC does not cover.', taken({ congestion: FECN })),
  testCase(
    'variant/reserved',
    [13],
    'The reserved bits of byte 4 of the BTH are set, which the ICRC does not cover.',
    taken({ congestion: RESERVED }),
  ),
  {
    name: 'variant/dscp',
    rules: [13],
    about: 'The packet comes with another DSCP.',
    needs: ['traffic class'],
    steps: taken({ dscp: 46 }),
  },
  {
    name: 'variant/ecn',
    rules: [13],
    about: 'The packet comes with ECN 10.',
    needs: ['traffic class'],
    steps: taken({ ecn: 2 }),
  },
  testCase('malformed/short-reth', [14], 'The packet ends inside its RETH.', dropped({ cut: 8 })),
  { name: 'malformed/no-reth', rules: [14], about: 'The packet ends after its BTH.', steps: dropped({ cut: 16 }) },
  testCase(
    'malformed/pad',
    [14],
    'The pad count is 3, and there is no payload to pad.',
    dropped({ forge: [[FLAGS, 0x70]] }),
  ),
  testCase(
    'qp0',
    [15],
    'A UD SEND goes to QP 0.',
    dropped({ fields: { destQpn: 0, sourceQpn: 0, qkey: 0x8001_0000 }, bytes: 256 }, UD_SEND_ONLY),
  ),
  testCase('transport-version', [16], 'The transport version is 1.', dropped({ forge: [[FLAGS, 0x41]] })),
  testCase('migreq/0', [18], 'MigReq is 0.', taken({ fields: { migReq: false } })),
  { name: 'migreq/1', rules: [18], about: 'MigReq is 1.', steps: taken({ fields: { migReq: true } }) },
  testCase('pkey/other', [20], 'The P_Key is that of another partition.', dropped({ fields: { pkey: 0x8001 } })),
  testCase(
    'pkey/limited',
    [20],
    'The P_Key is that of a limited member of the partition, which a full member takes.',
    taken({ fields: { pkey: 0x7fff } }),
  ),
  testCase(
    'transport-class',
    [21],
    'An opcode of UC comes to a queue pair of RC.',
    dropped({}, UC_BASE | RC_WRITE_ONLY),
  ),
  testCase('opcode/reserved', [22], 'The opcode is 0x1f, which is reserved. It is dropped, or refused.', () => [
    ping(0, { forge: [[0, 0x1f]] }),
    { do: 'silence or', answer: { kind: 'nak', at: 0, codes: [NAK_INVALID_REQUEST] } },
    ping(0),
    ack(0, 1),
  ]),
];
