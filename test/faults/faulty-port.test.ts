import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../src/core/random.js';
import { IpAddress } from '../../src/packet/address.js';
import { checkIcrc, ICRC_BAD, ICRC_OK, IcrcFlow, sealIcrc } from '../../src/packet/icrc.js';
import { RC_SEND_ONLY } from '../../src/packet/opcode.js';
import { writeBth } from '../../src/packet/roce.js';
import { FaultPlan } from '../../src/port/faults/fault-plan.js';
import { FaultyPort } from '../../src/port/faults/faulty-port.js';
import { collect, type Received, sendAll } from '../contracts/port-contract.js';
import { MirrorPort } from './mirror-port.js';
import { TestClock } from './test-clock.js';

const A = IpAddress.parse('127.0.0.1');
const B = IpAddress.parse('127.0.0.2');
const FLOW = new IcrcFlow(A, B, 0xc000, 4791);

/** A sealed SEND_ONLY with the PSN as its only mark. */
function packet(psn: number, ipId = 0): Uint8Array {
  const bytes = new Uint8Array(64);
  writeBth(bytes, 0, RC_SEND_ONLY, 0, 17, true, psn);
  sealIcrc(FLOW, bytes, 0, bytes.length, ipId, undefined);
  return bytes;
}

const packets = (count: number): Uint8Array[] => Array.from({ length: count }, (_, psn) => packet(psn));
const psnsOf = (received: readonly Received[]): number[] => received.map(({ payload }) => payload[11]);

function through(rules: string, payloads: readonly Uint8Array[], inner = new MirrorPort()): Received[] {
  const port = new FaultyPort(inner, FaultPlan.parse(rules, new SeededRandom(1)), new TestClock());
  const received = collect(port);
  sendAll(port, port, payloads, { sourcePort: 0xc000 });
  return received;
}

describe('faulty port', () => {
  it('passes everything, in order and with all fields, when no rule strikes', () => {
    const port = new FaultyPort(new MirrorPort(), FaultPlan.parse('psn=99', new SeededRandom(1)), new TestClock());
    const received = collect(port);
    sendAll(port, port, packets(20), { sourcePort: 0xc777, ecn: 3, dscp: 26, firstIpId: 5 });
    expect(psnsOf(received)).toEqual(Array.from({ length: 20 }, (_, i) => i));
    expect(received[19]).toMatchObject({ sourcePort: 0xc777, ecn: 3, dscp: 26, ipId: 24, destinationPort: 4791 });
    expect(received[19].payload).toEqual(packet(19));
  });

  it('drops on the way out', () => {
    expect(psnsOf(through('host>wire:psn=3-5', packets(8)))).toEqual([0, 1, 2, 6, 7]);
  });

  it('leaves every ICRC right for the place that is left in a train', () => {
    const train = Array.from({ length: 8 }, (_, psn) => packet(psn, psn));
    const received = through('host>wire:psn=3-4', train, new MirrorPort('train'));
    expect(received.map(({ ipId }) => ipId)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(received.map(({ payload }) => payload)).toEqual([0, 1, 2, 5, 6, 7].map((psn, id) => packet(psn, id)));
  });

  it('drops on the way in', () => {
    expect(psnsOf(through('wire>host:every=3', packets(8)))).toEqual([0, 1, 3, 4, 6, 7]);
  });

  it('asks a rule without direction about both, sent packets and received ones alike', () => {
    expect(psnsOf(through('psn=2:once', packets(4)))).toEqual([0, 1, 3]);
    // Of the eight sent the fourth and eighth go, of the six that are left to receive the fourth.
    expect(psnsOf(through('every=4', packets(8)))).toEqual([0, 1, 2, 5, 6]);
  });

  it.each(['host>wire', 'wire>host'])('duplicates on %s', (direction) => {
    expect(psnsOf(through(`${direction}:duplicate=1:once`, packets(3)))).toEqual([0, 0, 1, 2]);
  });

  it.each(['host>wire', 'wire>host'])('holds back behind exactly N others on %s, across batches', (direction) => {
    expect(psnsOf(through(`${direction}:reorder=1,3:once`, packets(5)))).toEqual([1, 2, 3, 0, 4]);
    const late = psnsOf(through(`${direction}:reorder=1,10:once`, packets(12)));
    expect(late).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 11]);
  });

  it('delivers a held datagram as it was', () => {
    const received = through('reorder=1,10:once', packets(12));
    expect(received[10].payload).toEqual(packet(0));
  });

  it.each(['host>wire', 'wire>host'])('corrupts on %s so that every ICRC check fails', (direction) => {
    const check = ({ payload }: Received) => checkIcrc(FLOW, payload, 0, payload.length, 0);
    expect(through(`${direction}:corrupt=1`, packets(50)).map(check)).not.toContain(ICRC_OK);
    expect(new Set(through('psn=99', packets(50)).map(check))).toEqual(new Set([ICRC_OK]));
  });

  it('numbers datagrams itself where the identification cannot be seen', () => {
    const received = through('host>wire:ip-id-lsb=0xff', packets(512));
    expect(received.length).toBe(510);
    expect(psnsOf(received).filter((psn) => psn === 255).length).toBe(0);
  });

  it('uses the real identification where there is one', () => {
    const port = new FaultyPort(
      new MirrorPort('sequential'),
      FaultPlan.parse('host>wire:ip-id-lsb=0xff', new SeededRandom(1)),
      new TestClock(),
    );
    const received = collect(port);
    sendAll(port, port, packets(8), { firstIpId: 0x1fc });
    expect(psnsOf(received)).toEqual([0, 1, 2, 4, 5, 6, 7]);
  });

  it('lets bytes through that are no RoCE packet', () => {
    expect(through('every=1', [new Uint8Array(15)]).length).toBe(1);
    expect(through('every=1', [new Uint8Array(16)]).length).toBe(0);
  });

  it('gives every batch back, and none out that it could not rebuild', () => {
    const inner = new MirrorPort();
    const port = new FaultyPort(inner, FaultPlan.parse('duplicate=1', new SeededRandom(1)), new TestClock());
    sendAll(port, port, packets(100));
    expect(inner.free.length).toBe(3);
    expect(port.counters).toEqual({ txDatagrams: 200, rxDatagrams: 0, txErrors: 0 });

    const tight = new MirrorPort('zero', 1);
    const starved = new FaultyPort(tight, FaultPlan.parse('psn=99', new SeededRandom(1)), new TestClock());
    expect(starved.beginBatch()).toBeUndefined();
    expect(tight.free.length).toBe(1);
  });
});

describe('actions on a port', () => {
  it.each(['host>wire', 'wire>host'])('mark, rewrite and trim on %s', (direction) => {
    const check = ({ payload }: Received) => checkIcrc(FLOW, payload, 0, payload.length, 0);
    const received = through(
      `${direction}:psn=1,mark;${direction}:psn=2,rewrite=psn,9;${direction}:psn=3,trim=20`,
      packets(5),
    );
    expect(received.map(({ ecn }) => ecn)).toEqual([0, 3, 0, 0, 0]);
    expect(psnsOf(received)).toEqual([0, 1, 9, 3, 4]);
    expect(received.map(({ payload }) => payload.length)).toEqual([64, 64, 64, 20, 64]);
    expect(received.map(check)).toEqual([ICRC_OK, ICRC_OK, ICRC_OK, ICRC_BAD, ICRC_OK]);
  });

  it.each(['host>wire', 'wire>host'])('delay on %s: by the clock that is passed in', (direction) => {
    const clock = new TestClock();
    const inner = new MirrorPort();
    const port = new FaultyPort(
      inner,
      FaultPlan.parse(`${direction}:psn=1,delay=2ms;${direction}:psn=2,delay=1ms`, new SeededRandom(1)),
      clock,
    );
    const received = collect(port);
    sendAll(port, port, packets(4), { sourcePort: 0xc000 });
    expect(psnsOf(received)).toEqual([0, 3]);
    clock.goTo(999_999);
    expect(psnsOf(received)).toEqual([0, 3]);
    clock.goTo(1_000_000);
    expect(psnsOf(received)).toEqual([0, 3, 2]);
    clock.goTo(2_000_000);
    expect(psnsOf(received)).toEqual([0, 3, 2, 1]);
    expect(received[3].payload).toEqual(packet(1));
    expect(inner.free.length).toBe(3);
  });

  it('lets nothing go once it is closed', async () => {
    const clock = new TestClock();
    const port = new FaultyPort(new MirrorPort(), FaultPlan.parse('every=1,delay=1ms', new SeededRandom(1)), clock);
    const received = collect(port);
    sendAll(port, port, packets(4));
    await port.close();
    clock.goTo(1e9);
    expect(received).toEqual([]);
  });
});
