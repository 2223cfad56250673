import { OPCODES } from 'rocev2/internal/packet';
import {
  ack,
  type CaseTerms,
  data,
  denied,
  type Need,
  type RequestPacket,
  refused,
  type Step,
  send,
  type TestCase,
} from '../step.js';
import { read, write } from './request-packets.js';

const NEEDS: readonly Need[] = ['memory', 'atomics', 'FLUSH'];
/** Placement types and selectivity levels, as a FETH has them. */
const GLOBAL = 0x01;
const REGION = 0x10;

const [FLUSH, ATOMIC_WRITE] = ['FLUSH', 'ATOMIC_WRITE'].map(
  (name) => OPCODES.find((info) => info?.name === name)!.opcode,
);

function atomicWrite(at: number, seed: number, details: Partial<RequestPacket> = {}): Step {
  return send(ATOMIC_WRITE, at, { bytes: 8, seed, ...details });
}

function flush(at: number, length: number, details: Partial<RequestPacket> = {}): Step {
  return send(FLUSH, at, { length, fields: { feth: GLOBAL }, ...details });
}

/** What answers both. */
function done(at: number, msn?: number): Step {
  return data(at, 0, 1, msn === undefined ? {} : { msn });
}

function placementCase(
  name: string,
  rules: readonly number[],
  about: string,
  steps: (terms: CaseTerms) => readonly Step[],
): TestCase {
  return { name, rules, about, needs: NEEDS, steps };
}

export const PLACEMENT_CASES: readonly TestCase[] = [
  placementCase(
    'atomic-write/written',
    [112],
    'An ATOMIC WRITE is answered, and its 8 bytes are in the memory.',
    () => [atomicWrite(0, 1), done(0, 1), read(1, 8), data(1, 8, 1, { msn: 2 })],
  ),
  placementCase(
    'atomic-write/unaligned',
    [112],
    'An ATOMIC WRITE goes to an address that is not a multiple of 8.',
    () => [atomicWrite(0, 1, { place: 4 }), refused(0)],
  ),
  placementCase(
    'atomic-write/again',
    [114],
    'An ATOMIC WRITE that comes again is answered again, and writes nothing.',
    () => [
      atomicWrite(0, 1),
      done(0, 1),
      write(1, 8, { seed: 2 }),
      ack(1, 2),
      atomicWrite(0, 1),
      done(0),
      read(2, 8),
      data(2, 8, 2),
    ],
  ),
  placementCase('flush/range', [115], 'A FLUSH comes after a WRITE to the same range.', () => [
    write(0, 8, { ackReq: false }),
    flush(1, 8),
    done(1, 2),
    read(2, 8),
    data(2, 8, 1, { msn: 3 }),
  ]),
  placementCase('flush/again', [114], 'A FLUSH that comes again is answered again.', () => [
    flush(0, 8),
    done(0, 1),
    flush(0, 8),
    done(0),
  ]),
  placementCase('flush/region', [115], 'A FLUSH of the whole region names a range outside of it.', ({ offer }) => [
    flush(0, 16, { place: offer!.open.bytes - 8, fields: { feth: GLOBAL | REGION } }),
    done(0, 1),
  ]),
  placementCase('flush/beyond', [115], 'A FLUSH ends behind the memory.', ({ offer }) => [
    flush(0, 16, { place: offer!.open.bytes - 8 }),
    denied(0),
  ]),
  placementCase('flush/key', [115], 'A FLUSH has a made-up key.', () => [
    flush(0, 8, { memory: 'wrong key' }),
    denied(0),
  ]),
  placementCase('flush/right', [115], 'A FLUSH names memory without the right to flush it.', () => [
    flush(0, 8, { memory: 'readOnly' }),
    denied(0),
  ]),
  {
    ...placementCase('flush/unallowed', [75], 'A FLUSH comes to a queue pair that allows none.', () => [
      flush(0, 8),
      refused(0),
    ]),
    connect: () => ({ isClosed: true }),
  },
];
