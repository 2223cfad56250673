import { ack, data, gap, type Step, type TestCase } from '../step.js';
import { ping, read, write, writeFirst, writeLast } from './request-packets.js';

/** PSN 4 of the connection is 0. */
const START_PSN = 0xff_fffc;
const connect = () => ({ startPsn: START_PSN });

function acknowledged(psns: readonly number[]): Step[] {
  return psns.flatMap((at) => [ping(at), ack(at, at + 1)]);
}

export const WRAP_CASES: readonly TestCase[] = [
  {
    name: 'wrap/writes',
    rules: [34],
    about: 'The PSNs of WRITEs pass 2^24.',
    connect,
    steps: () => acknowledged([0, 1, 2, 3, 4, 5, 6, 7]),
  },
  {
    name: 'wrap/message',
    rules: [34],
    about: 'A WRITE has its first packet before 2^24, and its last after it. A READ brings what it wrote.',
    needs: ['memory'],
    connect,
    steps: ({ mtu }) => [
      ...acknowledged([0, 1, 2]),
      writeFirst(3, mtu, mtu + 8),
      writeLast(4, 8, { from: mtu }),
      ack(4, 4),
      read(5, mtu + 8),
      data(5, mtu + 8),
    ],
  },
  {
    name: 'wrap/gap',
    rules: [34],
    about: 'The last PSN before 2^24 is left out. The NAK names it.',
    connect,
    steps: () => [...acknowledged([0, 1, 2]), ping(4), gap(3), ping(3), ack(3, 4), ping(4), ack(4, 5)],
  },
  {
    name: 'wrap/duplicate',
    rules: [34],
    about: 'Behind 2^24 a WRITE from before it comes again. It changes nothing, and the ACK names the newest PSN.',
    needs: ['memory'],
    connect,
    steps: () => [
      ...acknowledged([0, 1, 2]),
      write(3, 8, { seed: 1 }),
      ack(3, 4),
      write(4, 8, { seed: 2 }),
      ack(4, 5),
      write(3, 8, { seed: 1 }),
      ack(4, 5),
      read(5, 8),
      data(5, 8, 2),
    ],
  },
  {
    name: 'wrap/read',
    rules: [34],
    about: 'The responses of a READ have PSNs before 2^24 and after it. Its second half is asked for again.',
    needs: ['memory'],
    connect,
    steps: ({ mtu }) => [
      writeFirst(0, mtu, 2 * mtu),
      writeLast(1, mtu, { from: mtu }),
      ack(1, 1),
      ping(2),
      ack(2, 2),
      read(3, 2 * mtu),
      data(3, 2 * mtu),
      read(4, mtu, { place: mtu }),
      data(4, mtu, 1, { from: mtu, isRest: true }),
      ping(5),
      ack(5, 4),
    ],
  },
];
