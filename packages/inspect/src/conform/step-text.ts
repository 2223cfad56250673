/** PSNs count from the start of the connection. */

import {
  NAK_INVALID_REQUEST,
  NAK_PSN_SEQUENCE,
  NAK_REMOTE_ACCESS,
  NAK_REMOTE_OPERATION,
  OPCODES,
  SYNDROME_KIND_NAK,
  SYNDROME_KIND_RNR,
  syndromeKind,
} from 'rocev2/internal/packet';
import type { Answer, AnswerPacket, DueRequest, RequestPacket, Step } from './step.js';

const NAK_NAMES: ReadonlyMap<number, string> = new Map([
  [NAK_PSN_SEQUENCE, 'NAK 0x60 (sequence)'],
  [NAK_INVALID_REQUEST, 'NAK 0x61 (invalid request)'],
  [NAK_REMOTE_ACCESS, 'NAK 0x62 (remote access)'],
  [NAK_REMOTE_OPERATION, 'NAK 0x63 (remote operation)'],
]);

export function nakName(code: number): string {
  return NAK_NAMES.get(code) ?? `syndrome 0x${code.toString(16)}`;
}

export function answerText(answer: Answer): string {
  const { at } = answer;
  const counted = 'msn' in answer && answer.msn !== undefined ? `, MSN ${answer.msn}` : '';
  switch (answer.kind) {
    case 'ack':
      return `ACK of PSN ${at}${counted}`;
    case 'nak':
      return `${answer.codes.map(nakName).join(' or ')} at PSN ${at}`;
    case 'rnr':
      return `RNR NAK with timer ${answer.timer} at PSN ${at}`;
    case 'atomic':
      return `atomic result ${answer.value} at PSN ${at}${counted}`;
    case 'read':
      return `READ response of ${answer.bytes} bytes from PSN ${at}${counted}`;
  }
}

export function requestText({ opcode, at, length, place, notBeforeMs, notAfterMs }: DueRequest): string {
  const range = length === undefined ? '' : ` for ${length} bytes from byte ${place ?? 0} on`;
  const times = [
    notBeforeMs === undefined ? undefined : `not before ${round(notBeforeMs)} ms`,
    notAfterMs === undefined ? undefined : `within ${round(notAfterMs)} ms`,
  ].filter((text) => text !== undefined);
  return [`${OPCODES[opcode]!.name}${range} with PSN ${at}`, ...times].join(', ');
}

function round(milliseconds: number): number {
  return Number(milliseconds.toPrecision(3));
}

export function stepText(step: Step): string {
  switch (step.do) {
    case 'send':
      return `send ${sentText(step.packet)}`;
    case 'expect':
      return `expect ${answerText(step.answer)}`;
    case 'request':
      return `expect the request ${requestText(step.request)}`;
    case 'answer':
      return `answer ${givenText(step.packet)}`;
    case 'pause':
      return `wait ${round(step.milliseconds)} ms`;
    case 'silence':
      return step.milliseconds === undefined ? 'expect nothing' : `expect nothing for ${round(step.milliseconds)} ms`;
    case 'silence or':
      return `expect nothing, or ${answerText(step.answer)}`;
    case 'reconnect':
      return 'connect again';
    case 'repeat':
      return `send the ${step.message} again, and expect its answer again`;
    case 'request again':
      return 'send a REQ for the same queue pair with another communication ID, and expect REJ 10 or REP';
  }
}

function sentText(packet: RequestPacket): string {
  const { opcode, at, bytes, length, place, memory, cut, flip, forge, congestion, dscp, ecn } = packet;
  const words = [
    `${OPCODES[opcode]!.name} with PSN ${at}`,
    bytes !== undefined && `${bytes} bytes`,
    length !== undefined && `length ${length}`,
    place !== undefined && `at byte ${place}`,
    memory !== undefined &&
      memory !== 'open' &&
      {
        readOnly: 'of read-only memory',
        foreign: 'of a foreign domain',
        window: 'in the window',
        'wrong key': 'with a wrong key',
        'of the first connection': 'with the key of the first connection',
      }[memory],
    cut !== undefined && `cut by ${cut} bytes`,
    flip !== undefined && (flip < 0 ? 'a bit of the ICRC flipped' : `a bit of byte ${flip} flipped`),
    ...(forge ?? []).map(([offset, value]) => `byte ${offset} replaced by 0x${value.toString(16)}`),
    congestion !== undefined && `byte 4 of the BTH or 0x${congestion.toString(16)}`,
    dscp !== undefined && `DSCP ${dscp}`,
    ecn !== undefined && `ECN ${ecn}`,
    packet.fields !== undefined &&
      Object.entries(packet.fields)
        .map(([name, value]) => `${name} ${value}`)
        .join(', '),
  ];
  return words.filter(Boolean).join(', ');
}

function givenText({ opcode, at, syndrome = 0, bytes }: AnswerPacket): string {
  const kind = syndromeKind(syndrome);
  const isRefusal = kind === SYNDROME_KIND_NAK || kind === SYNDROME_KIND_RNR;
  const timer = kind === SYNDROME_KIND_RNR ? `RNR NAK with timer ${syndrome & 0x1f}` : nakName(syndrome);
  const size = bytes === undefined ? '' : ` of ${bytes} bytes`;
  return `PSN ${at} by ${isRefusal ? timer : OPCODES[opcode]!.name}${size}`;
}
