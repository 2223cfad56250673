import {
  NAK_INVALID_REQUEST,
  NAK_REMOTE_ACCESS,
  RC_SEND_FIRST,
  RC_SEND_LAST,
  RC_SEND_MIDDLE,
  RC_SEND_ONLY,
  RC_WRITE_FIRST,
  RC_WRITE_LAST,
  RC_WRITE_MIDDLE,
  RC_WRITE_ONLY,
} from 'rocev2/internal/packet';
import {
  ack,
  type CaseTerms,
  data,
  memoryCase,
  nak,
  receiveCase,
  refused,
  type Step,
  send,
  type TestCase,
} from '../step.js';
import { read, write, writeFirst, writeLast, writeMiddle } from './request-packets.js';

/** Longer than a message may be, by one word. */
const TOO_LONG = 0x8000_0004;

function full(opcode: number, at: number, { mtu }: CaseTerms, length = 3 * mtu): Step {
  return send(opcode, at, { bytes: mtu, length });
}

function mixed(name: string, about: string, first: number, second: number): TestCase {
  return {
    name: `order/${name}`,
    rules: [24],
    about,
    needs: ['memory'],
    steps: (terms) => [
      send(first, 0, { bytes: terms.mtu, length: 3 * terms.mtu, ackReq: false }),
      full(second, 1, terms),
      refused(1),
    ],
  };
}

function orphan(name: string, about: string, opcode: number): TestCase {
  return { name: `order/${name}`, rules: [24], about, steps: (terms) => [full(opcode, 0, terms), refused(0)] };
}

export const SEQUENCE_CASES: readonly TestCase[] = [
  orphan('write-middle-alone', 'A WRITE MIDDLE comes without a FIRST.', RC_WRITE_MIDDLE),
  orphan('write-last-alone', 'A WRITE LAST comes without a FIRST.', RC_WRITE_LAST),
  orphan('send-middle-alone', 'A SEND MIDDLE comes without a FIRST.', RC_SEND_MIDDLE),
  orphan('send-last-alone', 'A SEND LAST comes without a FIRST.', RC_SEND_LAST),
  mixed('write-first-first', 'A second WRITE FIRST comes inside a WRITE.', RC_WRITE_FIRST, RC_WRITE_FIRST),
  mixed('write-first-only', 'A WRITE ONLY comes inside a WRITE.', RC_WRITE_FIRST, RC_WRITE_ONLY),
  mixed('write-first-send-middle', 'A SEND MIDDLE comes inside a WRITE.', RC_WRITE_FIRST, RC_SEND_MIDDLE),
  mixed('write-first-send-last', 'A SEND LAST comes inside a WRITE.', RC_WRITE_FIRST, RC_SEND_LAST),
  mixed('write-first-send-only', 'A SEND ONLY comes inside a WRITE.', RC_WRITE_FIRST, RC_SEND_ONLY),
  memoryCase('order/write-first-read', [24], 'A READ comes inside a WRITE.', ({ mtu }) => [
    writeFirst(0, mtu, 3 * mtu),
    read(1, 8),
    refused(1),
  ]),
  memoryCase(
    'length/write',
    [25, 26, 29],
    'A WRITE of three packets with right lengths is taken, and its data arrive.',
    ({ mtu }) => [
      writeFirst(0, mtu, 2 * mtu + 1),
      writeMiddle(1, mtu, { from: mtu, ackReq: false }),
      writeLast(2, 1, { from: 2 * mtu }),
      ack(2, 1),
      read(3, 2 * mtu + 1),
      data(3, 2 * mtu + 1),
    ],
  ),
  memoryCase('length/first-short', [25], 'A WRITE FIRST is four bytes shorter than the path MTU.', ({ mtu }) => [
    writeFirst(0, mtu - 4, 2 * mtu, { ackReq: true }),
    refused(0),
  ]),
  memoryCase('length/middle-short', [25], 'A WRITE MIDDLE is four bytes shorter than the path MTU.', ({ mtu }) => [
    writeFirst(0, mtu, 3 * mtu),
    writeMiddle(1, mtu - 4),
    refused(1),
  ]),
  memoryCase('length/middle-long', [25], 'A WRITE MIDDLE is four bytes longer than the path MTU.', ({ mtu }) => [
    writeFirst(0, mtu, 3 * mtu),
    writeMiddle(1, mtu + 4),
    refused(1),
  ]),
  receiveCase('length/last-empty', [26], 'A SEND LAST carries nothing.', ({ mtu }) => [
    send(RC_SEND_FIRST, 0, { bytes: mtu, ackReq: false }),
    send(RC_SEND_LAST, 1),
    refused(1),
  ]),
  memoryCase('length/last-long', [26], 'A WRITE LAST is four bytes longer than the path MTU.', ({ mtu }) => [
    writeFirst(0, mtu, 2 * mtu + 4),
    writeLast(1, mtu + 4),
    refused(1),
  ]),
  memoryCase('length/write-only-long', [27], 'A WRITE ONLY is four bytes longer than the path MTU.', ({ mtu }) => [
    write(0, mtu + 4),
    refused(0),
  ]),
  memoryCase('length/write-2gib', [28], 'A WRITE FIRST announces four bytes more than 2^31.', ({ mtu }) => [
    writeFirst(0, mtu, TOO_LONG, { ackReq: true }),
    nak(0, NAK_INVALID_REQUEST),
  ]),
  memoryCase('length/read-2gib', [28], 'A READ asks for four bytes more than 2^31.', () => [
    read(0, TOO_LONG),
    nak(0, NAK_INVALID_REQUEST),
  ]),
  memoryCase('length/only-less', [29], 'A WRITE ONLY carries four bytes less than its RETH says.', () => [
    write(0, 8, { length: 12 }),
    refused(0),
  ]),
  memoryCase('length/only-more', [29], 'A WRITE ONLY carries four bytes more than its RETH says.', () => [
    write(0, 12, { length: 8 }),
    refused(0),
  ]),
  memoryCase('length/last-less', [29], 'A WRITE ends four bytes before its RETH says.', ({ mtu }) => [
    writeFirst(0, mtu, mtu + 12),
    writeLast(1, 8),
    refused(1),
  ]),
  memoryCase('length/last-more', [29], 'A WRITE ends four bytes after the length of its RETH.', ({ mtu }) => [
    writeFirst(0, mtu, mtu + 8),
    writeLast(1, 12),
    refused(1),
  ]),
  receiveCase(
    'length/receive-short',
    [76],
    'A SEND of several packets is longer than the receive that it finds.',
    ({ mtu, offer }) => {
      const last = Math.ceil(offer!.receiveBytes / mtu);
      const middle = (at: number) => send(RC_SEND_MIDDLE, at, { bytes: mtu, ackReq: false });
      return [
        send(RC_SEND_FIRST, 0, { bytes: mtu, ackReq: false }),
        ...Array.from({ length: last - 1 }, (_, i) => middle(i + 1)),
        send(RC_SEND_LAST, last, { bytes: mtu }),
        refused(last),
      ];
    },
  ),
  memoryCase('length/read-too-far', [69], 'A READ asks for 2^31 bytes, more than there are. It is refused.', () => [
    read(0, 0x8000_0000),
    nak(0, NAK_INVALID_REQUEST, NAK_REMOTE_ACCESS),
  ]),
];
