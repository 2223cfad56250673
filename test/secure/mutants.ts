/** Recorded packets, changed in some way: none of them may be taken. */

import { SeededRandom } from '../../src/core/random.js';
import type { RxDatagram } from '../../src/port/datagram.js';
import { Dice } from '../support/dice.js';
import { createPair } from '../support/pair.js';

/** What became of the packets of {@link sendMutants}. */
export interface MutantReport {
  readonly sent: number;
  /** Those that reached the NIC. */
  readonly taken: number;
  /** By the name of the counter. */
  readonly drops: Readonly<Record<string, number>>;
  /** The honest peer still works. */
  readonly isServed: boolean;
}

/** How a packet is changed; of 16 and more bytes. */
type Mutation = (bytes: Uint8Array, dice: Dice, other: Uint8Array) => Uint8Array;

const MUTATIONS: readonly Mutation[] = [
  (bytes, dice) => {
    const bit = dice.int(0, bytes.length * 8 - 1);
    bytes[bit >> 3] ^= 1 << (bit & 7);
    return bytes;
  },
  (bytes, dice) => {
    for (let n = dice.int(1, 8); n > 0; n--) bytes[dice.int(0, bytes.length - 1)] = dice.int(0, 255);
    return bytes;
  },
  (bytes, dice) => bytes.subarray(0, dice.int(0, bytes.length - 1)),
  (bytes, dice) => {
    const longer = new Uint8Array(bytes.length + dice.int(1, 64));
    longer.set(bytes);
    return longer;
  },
  // The head of one packet and the rest of another.
  (bytes, dice, other) => {
    const cut = dice.int(1, Math.min(bytes.length, other.length) - 1);
    const mixed = other.slice();
    mixed.set(bytes.subarray(0, cut));
    return mixed;
  },
  // A new counter, as far ahead as can be.
  (bytes, dice) => {
    bytes[8 + dice.int(2, 7)] = dice.int(1, 255);
    return bytes;
  },
  // The other key.
  (bytes) => {
    bytes[4] ^= 0x80;
    return bytes;
  },
  (bytes) => bytes,
];

/** Sends so many changed packets to a NIC, which has taken the packets that they are made from. */
export async function sendMutants(seed: number, count: number): Promise<MutantReport> {
  const dice = new Dice(new SeededRandom(seed).stream('mutants'));
  const pair = await createPair({ seed, secure: {} });
  const { a, b } = pair;
  const recorded: RxDatagram[] = [];
  const receive = b.host.receive.bind(b.host);
  b.host.receive = (datagram) => {
    recorded.push({ ...datagram, bytes: datagram.bytes.slice() });
    receive(datagram);
  };
  const write = (fill: number) => {
    a.mr.bytes.fill(fill, 0, 3000);
    a.qp.postSend({ opcode: 'RDMA_WRITE', sges: [a.mr.sge(0, 3000)], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
    return pair.completions(a.cq, 1)[0].statusName === 'SUCCESS' && b.mr.bytes[2999] === fill;
  };
  for (let n = 0; n < 4; n++) write(n);
  const before = b.device.counters();
  for (let n = 0; n < count; n++) {
    const datagram = dice.pick(recorded);
    const bytes = dice.pick(MUTATIONS)(datagram.bytes.slice(), dice, dice.pick(recorded).bytes);
    receive({ ...datagram, bytes, length: bytes.length });
  }
  const after = b.device.counters();
  const drops = Object.entries(after).filter(([name, value]) => name.startsWith('secure_drop_') && value > 0);
  return {
    sent: count,
    taken: after.rx_packets - before.rx_packets,
    drops: Object.fromEntries(drops),
    isServed: write(0x77),
  };
}
