import { RC_ACK, RC_WRITE_ONLY_IMM } from 'rocev2/internal/packet';
import { ack, type CaseTerms, data, gap, type Step, send, silence, type TestCase } from '../step.js';
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
  {
    name: 'ack/ghost',
    rules: [36],
    about: 'An ACK of a PSN that the target never sent is ignored.',
    steps: () => [send(RC_ACK, 5, { fields: { syndrome: 0x1f, msn: 5 } }), silence, ping(0), ack(0, 1)],
  },
  { name: 'ack/asked', rules: [38], about: 'A request that asks is acknowledged.', steps: () => [ping(0), ack(0)] },
  {
    name: 'msn',
    rules: [40],
    about: 'The MSN counts whole messages: WRITEs, a WRITE of two packets, and a READ.',
    needs: ['memory'],
    steps: ({ mtu }) => [
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
    ],
  },
  {
    name: 'duplicate/write',
    rules: [42],
    about: 'A WRITE that comes again behind a newer one to the same place changes nothing.',
    needs: ['memory'],
    steps: () => [
      write(0, 8, { seed: 1 }),
      ack(0, 1),
      write(1, 8, { seed: 2 }),
      ack(1, 2),
      write(0, 8, { seed: 1 }),
      ack(1, 2),
      read(2, 8),
      data(2, 8, 2),
    ],
  },
  {
    name: 'duplicate/send',
    rules: [42],
    about: 'A SEND that comes again takes no second receive.',
    needs: ['receives'],
    steps: (terms) => {
      const { receives } = terms.offer!;
      return [message(0, 8), ack(0, 1), message(0, 8), ack(0, 1), ...each(receives - 1, 1, (at) => message(at, 8))];
    },
  },
  {
    name: 'duplicate/latest-psn',
    rules: [43],
    about: 'The ACK of a duplicate names the newest PSN, and its MSN.',
    steps: () => [ping(0), ack(0, 1), ping(1), ack(1, 2), ping(2), ack(2, 3), ping(0), ack(2, 3)],
  },
  {
    name: 'gap/nak',
    rules: [44],
    about: 'A PSN is left out. The NAK names it; when it comes, all goes on.',
    steps: () => [ping(0), ack(0, 1), ping(2), gap(1), ping(1), ack(1, 2), ping(2), ack(2, 3)],
  },
  {
    name: 'gap/one-nak',
    rules: [45],
    about: 'Five packets come behind a gap. There is one NAK.',
    steps: () => [
      ping(0),
      ack(0, 1),
      ping(2),
      gap(1),
      ...[3, 4, 5, 6].map((at) => ping(at)),
      silence,
      ping(1),
      ack(1, 2),
    ],
  },
  {
    name: 'gap/second-nak',
    rules: [44],
    about: 'After a gap was filled, a second one gets a NAK of its own.',
    steps: () => [ping(1), gap(0), ping(0), ack(0, 1), ping(2), gap(1), ping(1), ack(1, 2)],
  },
  {
    name: 'gap/nothing-executed',
    rules: [46],
    about: 'A WRITE behind a gap changes nothing.',
    needs: ['memory'],
    steps: () => [write(0, 8, { seed: 1 }), ack(0, 1), write(2, 8, { seed: 2 }), gap(1), read(1, 8), data(1, 8, 1)],
  },
  {
    name: 'rnr/timer',
    rules: [57],
    about: 'The SEND that finds no receive is answered by an RNR NAK with the timer of the queue pair.',
    needs: ['receives'],
    steps: (terms) => {
      const { receives } = terms.offer!;
      return [...each(receives, 0, (at) => message(at, 8)), message(receives, 8), rnr(receives, terms)];
    },
  },
  {
    name: 'receive/write',
    rules: [77],
    about: 'WRITEs without immediate data take no receive.',
    needs: ['receives'],
    steps: (terms) => {
      const { receives } = terms.offer!;
      const sends = each(receives, receives + 1, (at) => message(at, 8));
      return [...each(receives + 1, 0, (at) => ping(at)), ...sends];
    },
  },
  {
    name: 'receive/write-immediate',
    rules: [77],
    about: 'A WRITE with immediate data takes one receive.',
    needs: ['receives'],
    steps: (terms) => {
      const { receives } = terms.offer!;
      return [...each(receives, 0, notify), notify(receives), rnr(receives, terms)];
    },
  },
  {
    name: 'receive/immediate-once',
    rules: [78],
    about: 'A WRITE with immediate data that comes again takes no second receive.',
    needs: ['receives'],
    steps: (terms) => {
      const { receives } = terms.offer!;
      const again = [notify(0), ack(0, 1)];
      return [...again, ...again, ...each(receives - 1, 1, notify), notify(receives), rnr(receives, terms)];
    },
  },
  {
    name: 'reorder/write',
    rules: [107],
    about: 'The last packet of a WRITE overtakes the middle one, and is sent again. The data arrive in order.',
    needs: ['memory'],
    steps: ({ mtu }) => [
      writeFirst(0, mtu, 2 * mtu + 8),
      writeLast(2, 8, { from: 2 * mtu }),
      gap(1),
      writeMiddle(1, mtu, { from: mtu, ackReq: false }),
      writeLast(2, 8, { from: 2 * mtu }),
      ack(2, 1),
      read(3, 2 * mtu + 8),
      data(3, 2 * mtu + 8),
    ],
  },
  {
    name: 'duplicate/everything',
    rules: [108],
    about: 'Every packet of two WRITEs and a READ comes twice. Each is executed once.',
    needs: ['memory'],
    steps: ({ mtu }) => [
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
  },
];
