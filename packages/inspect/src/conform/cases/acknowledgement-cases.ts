import { RC_ACK, RC_WRITE_ONLY_IMM } from 'rocev2/internal/packet';
import {
  ack,
  type CaseTerms,
  data,
  gap,
  memoryCase,
  receiveCase,
  type Step,
  send,
  silence,
  type TestCase,
  testCase,
} from '../step.js';
import { message, ping, read, write, writeFirst, writeLast, writeMiddle } from './request-packets.js';

function rnr(at: number, { offer }: CaseTerms): Step {
  return { do: 'expect', answer: { kind: 'rnr', at, timer: offer!.minRnrTimer } };
}

function each(count: number, from: number, request: (at: number) => Step): Step[] {
  return Array.from({ length: count }, (_, i) => [request(from + i), ack(from + i)]).flat();
}

function notify(at: number): Step {
  return send(RC_WRITE_ONLY_IMM, at, { fields: { immediate: at } });
}

export const ACKNOWLEDGEMENT_CASES: readonly TestCase[] = [
  testCase('ack/ghost', [36], 'An ACK of a PSN that the target never sent is ignored.', () => [
    send(RC_ACK, 5, { fields: { syndrome: 0x1f, msn: 5 } }),
    silence,
    ping(0),
    ack(0, 1),
  ]),
  testCase('ack/asked', [38], 'A request that asks is acknowledged.', () => [ping(0), ack(0)]),
  memoryCase('msn', [40], 'The MSN counts whole messages: WRITEs, a WRITE of two packets, and a READ.', ({ mtu }) => [
    write(0, 8),
    ack(0, 1),
    writeFirst(1, mtu, mtu + 8, { ackReq: true }),
    ack(1, 1),
    writeLast(2, 8, { from: mtu }),
    ack(2, 2),
    read(3, mtu + 8),
    data(3, mtu + 8, 1, { msn: 3 }),
    write(5, 8),
    ack(5, 4),
  ]),
  memoryCase(
    'duplicate/write',
    [42],
    'A WRITE that comes again after a newer one to the same place changes nothing.',
    () => [
      write(0, 8, { seed: 1 }),
      ack(0, 1),
      write(1, 8, { seed: 2 }),
      ack(1, 2),
      write(0, 8, { seed: 1 }),
      ack(1, 2),
      read(2, 8),
      data(2, 8, 2),
    ],
  ),
  receiveCase('duplicate/send', [42], 'A SEND that comes again takes no second receive.', (terms) => {
    const { receives } = terms.offer!;
    return [message(0, 8), ack(0, 1), message(0, 8), ack(0, 1), ...each(receives - 1, 1, (at) => message(at, 8))];
  }),
  testCase('duplicate/latest-psn', [43], 'The ACK of a duplicate names the newest PSN, and its MSN.', () => [
    ping(0),
    ack(0, 1),
    ping(1),
    ack(1, 2),
    ping(2),
    ack(2, 3),
    ping(0),
    ack(2, 3),
  ]),
  testCase('gap/nak', [44], 'A PSN is left out. The NAK names it; when it arrives, the messages continue.', () => [
    ping(0),
    ack(0, 1),
    ping(2),
    gap(1),
    ping(1),
    ack(1, 2),
    ping(2),
    ack(2, 3),
  ]),
  testCase('gap/one-nak', [45], 'Five packets come after a gap. There is one NAK.', () => [
    ping(0),
    ack(0, 1),
    ping(2),
    gap(1),
    ...[3, 4, 5, 6].map((at) => ping(at)),
    silence,
    ping(1),
    ack(1, 2),
  ]),
  testCase('gap/second-nak', [44], 'After a gap was filled, a second one gets a separate NAK.', () => [
    ping(1),
    gap(0),
    ping(0),
    ack(0, 1),
    ping(2),
    gap(1),
    ping(1),
    ack(1, 2),
  ]),
  memoryCase('gap/nothing-executed', [46], 'A WRITE after a gap changes nothing.', () => [
    write(0, 8, { seed: 1 }),
    ack(0, 1),
    write(2, 8, { seed: 2 }),
    gap(1),
    read(1, 8),
    data(1, 8, 1),
  ]),
  receiveCase(
    'rnr/timer',
    [57],
    'The SEND that finds no receive is answered by an RNR NAK with the timer of the queue pair.',
    (terms) => {
      const { receives } = terms.offer!;
      return [...each(receives, 0, (at) => message(at, 8)), message(receives, 8), rnr(receives, terms)];
    },
  ),
  receiveCase('receive/write', [77], 'WRITEs without immediate data take no receive.', (terms) => {
    const { receives } = terms.offer!;
    const sends = each(receives, receives + 1, (at) => message(at, 8));
    return [...each(receives + 1, 0, (at) => ping(at)), ...sends];
  }),
  receiveCase('receive/write-immediate', [77], 'A WRITE with immediate data takes one receive.', (terms) => {
    const { receives } = terms.offer!;
    return [...each(receives, 0, notify), notify(receives), rnr(receives, terms)];
  }),
  receiveCase(
    'receive/immediate-once',
    [78],
    'A WRITE with immediate data that comes again takes no second receive.',
    (terms) => {
      const { receives } = terms.offer!;
      const again = [notify(0), ack(0, 1)];
      return [...again, ...again, ...each(receives - 1, 1, notify), notify(receives), rnr(receives, terms)];
    },
  ),
  memoryCase(
    'reorder/write',
    [107],
    'The last packet of a WRITE overtakes the middle one, and is sent again. The data arrive in order.',
    ({ mtu }) => [
      writeFirst(0, mtu, 2 * mtu + 8),
      writeLast(2, 8, { from: 2 * mtu }),
      gap(1),
      writeMiddle(1, mtu, { from: mtu, ackReq: false }),
      writeLast(2, 8, { from: 2 * mtu }),
      ack(2, 1),
      read(3, 2 * mtu + 8),
      data(3, 2 * mtu + 8),
    ],
  ),
  memoryCase(
    'duplicate/everything',
    [108],
    'Every packet of two WRITEs and a READ comes twice. Each is executed once.',
    ({ mtu }) => [
      writeFirst(0, mtu, mtu + 8, { ackReq: true }),
      ack(0, 0),
      writeFirst(0, mtu, mtu + 8, { ackReq: true }),
      ack(0, 0),
      writeLast(1, 8, { from: mtu }),
      ack(1, 1),
      writeLast(1, 8, { from: mtu }),
      ack(1, 1),
      write(2, 8, { seed: 2, place: mtu }),
      ack(2, 2),
      write(2, 8, { seed: 2, place: mtu }),
      ack(2, 2),
      read(3, mtu),
      data(3, mtu, 1, { msn: 3 }),
      write(4, 8, { seed: 3, place: mtu }),
      ack(4, 4),
    ],
  ),
];
