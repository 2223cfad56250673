/** Packets that came in one piece: one sum says that all are right, and where it says otherwise exactly the wrong ones are dropped. */

import { describe, expect, it } from 'vitest';
import { COUNTER } from '../../src/memory/ring/counters.js';
import { ReceivePath } from '../../src/nic/receive-path.js';
import { IpAddress } from '../../src/packet/address.js';
import { IcrcFlow, IP_ID_UNKNOWN, sealIcrc } from '../../src/packet/icrc.js';
import { RC_WRITE_MIDDLE } from '../../src/packet/opcode.js';
import { writeBth } from '../../src/packet/roce.js';
import type { RxDatagram } from '../../src/port/datagram.js';
import type { NicQueuePair } from '../../src/qp/nic-queue-pair.js';

const A = IpAddress.parse('192.0.2.1');
const B = IpAddress.parse('192.0.2.2');
const QPNS = [0x11, 0x12];
const PACKET_BYTES = 1040;
const PACKETS = 15;
/** Where the train stands. */
const AT = 12;

/** A queue pair that takes everything, and says which PSNs it got. */
function taker(psns: number[], flow: IcrcFlow): NicQueuePair {
  return {
    carries: () => true,
    accepts: () => true,
    peer: { matchesAddresses: () => true, matchesSourcePort: () => true, receiveFlow: () => flow },
    matchesQkey: () => true,
    receive: ({ psn }: { psn: number }) => psns.push(psn),
  } as unknown as NicQueuePair;
}

function station() {
  const psns: number[] = [];
  const counters = new Float64Array(Object.keys(COUNTER).length);
  const queuePairs = new Map(QPNS.map((qpn) => [qpn, taker(psns, new IcrcFlow(A, B, 4791, 4791))]));
  const path = new ReceivePath(counters, queuePairs, true);
  const slab = new Uint8Array(AT + 20 * PACKET_BYTES);
  const sender = new IcrcFlow(A, B, 4791, 4791);
  const write = (i: number, { qpn = QPNS[0], firstId = 0 } = {}) => {
    const at = AT + i * PACKET_BYTES;
    slab.fill(i + 1, at, at + PACKET_BYTES);
    writeBth(slab, at, RC_WRITE_MIDDLE, 0, qpn, false, i);
    slab[at + 4] = 0;
    sealIcrc(sender, slab, at, PACKET_BYTES, firstId + i, undefined);
  };
  const rx: RxDatagram = {
    bytes: slab,
    offset: 0,
    length: PACKET_BYTES,
    source: A,
    sourcePort: 4791,
    destination: B,
    destinationPort: 4791,
    ecn: 0,
    dscp: 0,
    ipId: 0,
  };
  const deliver = (i: number) => {
    rx.offset = AT + i * PACKET_BYTES;
    rx.ipId = IP_ID_UNKNOWN - i;
    path.receive(rx, 0);
  };
  const begin = (packets = PACKETS) => path.train.begin(slab, AT, PACKET_BYTES, packets);
  return {
    slab,
    write,
    begin,
    deliver,
    /** Writes a train, has it spoiled, and delivers it. */
    carry: (spoil: () => void = () => {}) => {
      for (let i = 0; i < PACKETS; i++) write(i);
      spoil();
      begin();
      for (let i = 0; i < PACKETS; i++) deliver(i);
    },
    flip: (i: number, byte = 500) => {
      slab[AT + i * PACKET_BYTES + byte] ^= 0x10;
    },
    /** PSNs since the last call. */
    taken: () => psns.splice(0),
    wrong: () => counters[COUNTER.rx_icrc_errors],
    accepted: () => counters[COUNTER.rx_accepted],
  };
}

const ALL = Array.from({ length: PACKETS }, (_, i) => i);

describe('a received train', () => {
  it('is taken whole', () => {
    const s = station();
    s.carry();
    expect(s.taken()).toEqual(ALL);
    expect(s.accepted()).toBe(PACKETS);
    expect(s.wrong()).toBe(0);
  });

  it.each(ALL)('loses packet %i if that is wrong, and no other', (i) => {
    const s = station();
    s.carry(() => s.flip(i));
    expect(s.taken()).toEqual(ALL.filter((psn) => psn !== i));
    expect(s.wrong()).toBe(1);
  });

  it('loses all wrong ones, also if they are wrong in the same bit', () => {
    const s = station();
    s.carry(() => {
      for (const i of [0, 7, 14]) s.flip(i);
    });
    expect(s.taken()).toEqual(ALL.filter((psn) => psn % 7 !== 0));
    expect(s.wrong()).toBe(3);
  });

  it('is summed once, ahead of its first packet', () => {
    const s = station();
    for (const i of ALL) s.write(i);
    s.begin();
    s.deliver(0);
    s.flip(1); // Nobody does that: it shows that packet 1 is not summed again.
    s.deliver(1);
    expect(s.taken()).toEqual([0, 1]);
  });

  it('says nothing of what stands there later', () => {
    const s = station();
    for (const i of ALL) s.write(i);
    s.begin();
    s.deliver(0);
    s.begin(1); // Another datagram by itself, in the same place.
    s.flip(1);
    s.deliver(1);
    expect(s.taken()).toEqual([0]);
    expect(s.wrong()).toBe(1);
  });

  it('says nothing of packets behind it, out of their order, or of another flow', () => {
    const s = station();
    for (let i = 0; i < PACKETS + 1; i++) s.write(i);
    s.write(5, { qpn: QPNS[1] });
    s.begin();
    for (const i of ALL.slice(0, 5)) s.deliver(i);
    s.flip(5);
    s.deliver(5); // Of another queue pair, whose flow is another object.
    expect(s.wrong()).toBe(1);
    s.flip(6);
    s.deliver(6); // Behind one that was summed by itself.
    expect(s.wrong()).toBe(2);
    s.carry();
    s.taken();
    s.write(PACKETS);
    s.flip(PACKETS);
    s.deliver(PACKETS);
    expect(s.taken()).toEqual([]);
    expect(s.wrong()).toBe(3);
  });

  it('whose packets are numbered otherwise is taken packet by packet', () => {
    const s = station();
    for (let round = 0; round < 5; round++) {
      for (const i of ALL) s.write(i, { firstId: 100 });
      s.begin();
      for (const i of ALL) s.deliver(i);
      expect(s.taken()).toEqual(ALL);
    }
    expect(s.wrong()).toBe(0);
  });

  it.each([
    [2, true],
    [3, false],
  ])('after %i wrong trains in a row a right one is summed at once: %s', (wrongOnes, atOnce) => {
    const s = station();
    for (let round = 0; round < wrongOnes; round++) s.carry(() => s.flip(3));
    const wrongBefore = s.wrong();
    for (const i of ALL) s.write(i);
    s.begin();
    s.deliver(0);
    s.flip(1);
    s.deliver(1);
    expect(s.wrong() - wrongBefore).toBe(atOnce ? 0 : 1);
  });
});
