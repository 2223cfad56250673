import { ack, data, memoryCase, type Need, refused, result, type Step, silence, type TestCase } from '../step.js';
import { add, clear, ping, read, swap, write, writeFirst, writeLast } from './request-packets.js';

const ATOMICS: readonly Need[] = ['memory', 'atomics'];
/** Targets with larger queues are not tested to their depth. */
const DEPTH_MAX = 64;

function filled(mtu: number): Step[] {
  return [writeFirst(0, mtu, 2 * mtu), writeLast(1, mtu, { from: mtu }), ack(1, 1)];
}

function rest(mtu: number, isRest: boolean): Step[] {
  return [
    ...filled(mtu),
    read(2, 2 * mtu),
    data(2, 2 * mtu),
    read(3, mtu, { place: mtu }),
    data(3, mtu, 1, { from: mtu, isRest }),
    ping(4),
    ack(4, 3),
  ];
}

export const READ_CASES: readonly TestCase[] = [
  memoryCase(
    'read/rest',
    [65],
    'The second half of a READ is asked for again, with address, length and PSN moved on.',
    ({ mtu }) => rest(mtu, true),
  ),
  memoryCase(
    'read/rest-restarts',
    [64],
    'As before, and the answer is a separate message: it begins with FIRST or ONLY.',
    ({ mtu }) => rest(mtu, false),
  ),
  memoryCase('read/again', [65], 'A READ that comes again is answered again, from the memory.', () => [
    write(0, 8, { seed: 1 }),
    ack(0, 1),
    read(1, 8),
    data(1, 8, 1),
    write(2, 8, { seed: 2 }),
    ack(2, 3),
    read(1, 8),
    data(1, 8, 2),
  ]),
  memoryCase('read/again-elsewhere', [65], 'A READ that comes again with an address before its own is dropped.', () => [
    write(0, 16),
    ack(0, 1),
    read(1, 8, { place: 8 }),
    data(1, 8, 1, { from: 8 }),
    read(1, 8, { place: 0 }),
    silence,
    ping(2),
    ack(2, 3),
  ]),
  {
    name: 'read/too-many',
    rules: [67],
    about: 'A READ comes to a target that takes none at a time.',
    needs: ['memory'],
    connect: () => ({ initiatorDepth: 0 }),
    steps: () => [read(0, 8), refused(0)],
  },
  memoryCase('read/empty', [68], 'A READ of no bytes is answered with any key.', () => [
    read(0, 0, { memory: 'wrong key' }),
    data(0, 0),
    ping(1),
    ack(1, 2),
  ]),
  memoryCase('write/empty', [68], 'A WRITE of no bytes is accepted with any key.', () => [
    write(0, 0, { memory: 'wrong key' }),
    ack(0, 1),
  ]),
  {
    name: 'atomic/again',
    rules: [70],
    about: 'A FETCH_ADD that comes again gets its first result again, and adds nothing.',
    needs: ATOMICS,
    steps: () => [
      clear(0),
      ack(0, 1),
      add(1, 5n),
      result(1, 0n, 2),
      add(1, 5n),
      result(1, 0n),
      add(2, 0n),
      result(2, 5n, 3),
    ],
  },
  {
    name: 'atomic/long-ago',
    rules: [71],
    about: 'A FETCH_ADD that comes again after as many others as the target remembers adds nothing.',
    needs: ATOMICS,
    steps: ({ depth }) => {
      const count = Math.min(depth, DEPTH_MAX) + 1;
      const others = Array.from({ length: count }, (_, i) => [add(2 + i, 1n), result(2 + i, BigInt(5 + i))]).flat();
      const end = 2 + count;
      return [
        clear(0),
        ack(0, 1),
        add(1, 5n),
        result(1, 0n),
        ...others,
        add(1, 5n),
        silence,
        add(end, 0n),
        result(end, BigInt(5 + count)),
      ];
    },
  },
  {
    name: 'atomic/unaligned',
    rules: [72],
    about: 'A FETCH_ADD to an address that is not a multiple of 8.',
    needs: ATOMICS,
    steps: () => [add(0, 1n, { place: 1 }), refused(0)],
  },
  {
    name: 'atomic/carry',
    rules: [73],
    about: 'FETCH_ADD carries from the low half to the high half, and results are big-endian.',
    needs: ATOMICS,
    steps: () => [
      clear(0),
      ack(0, 1),
      add(1, 0xffff_ffffn),
      result(1, 0n),
      add(2, 0x1_0000_0002n),
      result(2, 0xffff_ffffn),
      add(3, 0n),
      result(3, 0x2_0000_0001n),
    ],
  },
  {
    name: 'atomic/compare-swap',
    rules: [73],
    about: 'COMPARE_SWAP swaps what equals, and leaves what does not.',
    needs: ATOMICS,
    steps: () => [
      clear(0),
      ack(0, 1),
      swap(1, 0n, 7n),
      result(1, 0n),
      swap(2, 0n, 9n),
      result(2, 7n),
      swap(3, 7n, 0x1_0000_0000n),
      result(3, 7n),
      add(4, 0n),
      result(4, 0x1_0000_0000n),
    ],
  },
];
