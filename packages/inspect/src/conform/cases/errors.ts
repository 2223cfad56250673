import {
  ack,
  type CaseTerms,
  data,
  denied,
  memoryCase,
  type Need,
  reconnect,
  refused,
  type Step,
  silence,
  type TestCase,
  testCase,
} from '../step.js';
import { add, ping, read, write, writeFirst, writeLast, writeMiddle } from './request-packets.js';

function offered({ offer }: CaseTerms) {
  return offer!.open.bytes;
}

function forbidden(name: string, about: string, request: (terms: CaseTerms) => Step): TestCase {
  const needs = name.startsWith('atomic') ? (['memory', 'atomics'] as const) : (['memory'] as const);
  return { name: `access/${name}`, rules: [74], about, needs, steps: (terms) => [request(terms), denied(0)] };
}

function unallowed(name: string, about: string, needs: readonly Need[], request: Step): TestCase {
  const connect = () => ({ isClosed: true });
  return { name: `operation/${name}`, rules: [75], about, needs, connect, steps: () => [request, refused(0)] };
}

export const ERROR_CASES: readonly TestCase[] = [
  forbidden('write-key', 'A WRITE has a made-up key.', () => write(0, 8, { memory: 'wrong key' })),
  forbidden('read-key', 'A READ has a made-up key.', () => read(0, 8, { memory: 'wrong key' })),
  forbidden('atomic-key', 'A FETCH_ADD has a made-up key.', () => add(0, 1n, { memory: 'wrong key' })),
  forbidden('write-domain', 'A WRITE has the key of another protection domain.', () =>
    write(0, 8, { memory: 'foreign' }),
  ),
  forbidden('read-domain', 'A READ has the key of another protection domain.', () => read(0, 8, { memory: 'foreign' })),
  forbidden('write-right', 'A WRITE goes to memory that may only be read.', () => write(0, 8, { memory: 'readOnly' })),
  forbidden('atomic-right', 'A FETCH_ADD goes to memory that may only be read.', () =>
    add(0, 1n, { memory: 'readOnly' }),
  ),
  forbidden('write-below', 'A WRITE begins before the memory.', () => write(0, 16, { place: -8 })),
  forbidden('read-beyond', 'A READ ends behind the memory.', (terms) => read(0, 16, { place: offered(terms) - 8 })),
  memoryCase('access/write-beyond', [74], 'A WRITE ends behind the memory. Nothing of it is written.', (terms) => {
    const place = offered(terms) - 8;
    return [
      write(0, 8, { place, seed: 1 }),
      ack(0, 1),
      write(1, 16, { place, seed: 2 }),
      denied(1),
      reconnect,
      read(0, 8, { place }),
      data(0, 8, 1),
    ];
  }),
  unallowed('write', 'A WRITE comes to a queue pair that allows none.', ['memory'], write(0, 8)),
  unallowed('read', 'A READ comes to a queue pair that allows none.', ['memory'], read(0, 8)),
  unallowed('atomic', 'A FETCH_ADD comes to a queue pair that allows none.', ['memory', 'atomics'], add(0, 1n)),
  testCase('fatal/silence', [80], 'After a fatal NAK nothing is answered, and nothing executed.', ({ mtu }) => [
    ping(0),
    ack(0, 1),
    writeMiddle(1, mtu),
    refused(1),
    ping(1),
    ping(2),
    ping(0),
    silence,
  ]),
  memoryCase(
    'fatal/after-answers',
    [81],
    'A READ and a forbidden WRITE come at once. The NAK leaves behind the data.',
    ({ mtu }) => [
      writeFirst(0, mtu, 2 * mtu),
      writeLast(1, mtu, { from: mtu }),
      ack(1, 1),
      read(2, 2 * mtu),
      write(4, 8, { memory: 'wrong key' }),
      data(2, 2 * mtu),
      denied(4),
    ],
  ),
];
