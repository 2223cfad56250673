import { describe, expect, it } from 'vitest';
import { type Diagnosis, diagnose } from '../../src/verbs/estats/diagnosis.js';
import type { EstatsSnapshot } from '../../src/verbs/estats/endpoint-document.js';
import { snapshotOf } from '../../src/verbs/estats/snapshot.js';
import { createPair, type Pair, type PairOptions, type Player } from '../support/pair.js';

const MS = 1e6;

function snapshot(player: Player): EstatsSnapshot {
  const { device } = player;
  return snapshotOf(
    device.estats!,
    { pid: 1, address: device.address.text, port: device.portDescription, engine: 'inline' },
    1,
  );
}

/** What `estats diagnose` would say of A's work of this kind, both ends attached. */
function verdict(pair: Pair, op = 'RDMA_WRITE'): Diagnosis {
  const found = diagnose(snapshot(pair.a), [snapshot(pair.b)]).find((row) => row.op === op);
  if (found === undefined) throw new Error(`no diagnosis of ${op}`);
  return found;
}

async function open(options: PairOptions = {}): Promise<Pair> {
  return createPair({ estats: {}, delayNs: 20_000, mtu: 1024, ...options });
}

function write(pair: Pair, bytes: number, fence = false): void {
  const { a, b } = pair;
  a.qp.postSend({
    opcode: 'RDMA_WRITE',
    sges: [a.mr.sge(0, bytes)],
    remoteAddr: b.mr.addr,
    rkey: b.mr.rkey,
    fence,
  });
}

/** WRITEs one after another, each polled as soon as it is done. */
function oneByOne(pair: Pair, count: number, bytes = 4096): void {
  for (let n = 0; n < count; n++) {
    write(pair, bytes);
    expect(pair.completions(pair.a.cq, 1)).toHaveLength(1);
  }
}

/** From now on this host hears nothing while its program stands still: `stallMs` out of every `periodMs`. Its loop delay is recorded. */
function standStill({ events }: Pair, player: Player, stallMs: number, periodMs: number): void {
  const { host, device } = player;
  const receive = host.receive.bind(host);
  host.receive = (datagram) => {
    const sinceNs = events.nowNs % (periodMs * MS);
    if (sinceNs < stallMs * MS) events.after(stallMs * MS - sinceNs, () => receive(datagram));
    else receive(datagram);
  };
  const tick = () => {
    device.estats!.recordLoopDelay(stallMs * MS, 1);
    if (events.nowNs < 10e9) events.after(periodMs * MS, tick);
  };
  events.after(stallMs * MS + 1, tick); // Behind what is heard when it goes on.
}

describe('diagnose names', () => {
  it('the network when nothing is wrong and the way is long', async () => {
    const pair = await open({ delayNs: 5 * MS });
    oneByOne(pair, 20);
    expect(verdict(pair)).toMatchObject({ owner: 'network', stage: 't4_t3', count: 20 });
    expect(verdict(pair).share).toBeGreaterThan(0.99);
    expect(verdict(pair).because).toMatch(/neither losses nor the programs/);
  });

  it('the network when packets are lost until the timer ends it', async () => {
    const pair = await open({ faults: 'a>b:every=3' });
    oneByOne(pair, 20, 512);
    expect(verdict(pair)).toMatchObject({ owner: 'network', stage: 't4_t3' });
    expect(verdict(pair).because).toMatch(/packets were lost: \d+ timeouts/);
  });

  it('the application when it polls late', async () => {
    const pair = await open();
    for (let n = 0; n < 20; n++) {
      write(pair, 4096);
      pair.run({ untilNs: pair.events.nowNs + 3 * MS });
      pair.a.cq.poll();
    }
    expect(verdict(pair)).toMatchObject({ owner: 'application', stage: 't6_t5' });
  });

  it('the application when its own event loop stands still, though it looks like the network', async () => {
    const pair = await open();
    standStill(pair, pair.a, 40, 50);
    oneByOne(pair, 20);
    expect(verdict(pair)).toMatchObject({ owner: 'application', stage: 't4_t3' });
    expect(verdict(pair).because).toMatch(/event loop of this program was stalled/);
  });

  it('the responder when its event loop stands still', async () => {
    const pair = await open();
    standStill(pair, pair.b, 40, 50);
    oneByOne(pair, 20);
    expect(verdict(pair)).toMatchObject({ owner: 'responder', stage: 't4_t3' });
  });

  it('the network when the responder stands still rather often, but requests come seldom and take long anyway', async () => {
    const pair = await open({ delayNs: 50 * MS });
    standStill(pair, pair.b, 4, 10);
    for (let n = 0; n < 20; n++) {
      oneByOne(pair, 1);
      pair.run({ untilNs: pair.events.nowNs + 200 * MS });
    }
    expect(verdict(pair)).toMatchObject({ owner: 'network', stage: 't4_t3' });
  });

  it('not the responder when it stands still seldom, though a few requests meet that', async () => {
    const pair = await open();
    standStill(pair, pair.b, 20, 500);
    oneByOne(pair, 20_000, 8);
    expect(verdict(pair)).toMatchObject({ owner: 'network', stage: 't4_t3' });
  });

  it('the network, and says what it does not know, when the responder has no telemetry', async () => {
    const pair = await open();
    standStill(pair, pair.b, 40, 50);
    oneByOne(pair, 20);
    const [row] = diagnose(snapshot(pair.a), []);
    expect(row.owner).toBe('network');
    expect(row.because).toMatch(/no telemetry of the peer/);
  });

  it('the responder when it posts receives late', async () => {
    const pair = await open({ attrB: { minRnrTimer: 14 } });
    for (let n = 0; n < 10; n++) {
      pair.a.qp.postSend({ opcode: 'SEND', sges: [pair.a.mr.sge(0, 64)] });
      pair.run({ untilNs: pair.events.nowNs + 2 * MS });
      pair.b.qp.postRecv({ sges: [pair.b.mr.sge(0, 64)] });
      pair.completions(pair.a.cq, 1);
    }
    expect(verdict(pair, 'SEND')).toMatchObject({ owner: 'responder', stage: 't4_t3' });
    expect(verdict(pair, 'SEND').because).toMatch(/RNR/);
  });

  it('pacing when rate control holds packets back', async () => {
    const pair = await open({ attrA: { rateControl: { name: 'fixed', rateBps: 50e6 } } });
    for (let n = 0; n < 8; n++) write(pair, 20_000);
    expect(pair.completions(pair.a.cq, 8)).toHaveLength(8);
    expect(verdict(pair).owner).toBe('pacing');
    expect(['t2_t1', 't3_t2']).toContain(verdict(pair).stage);
  });

  it('pacing when rate control of the responder holds READ responses back', async () => {
    const pair = await open({ attrB: { rateControl: { name: 'fixed', rateBps: 50e6 } } });
    const { a, b } = pair;
    for (let n = 0; n < 8; n++) {
      a.qp.postSend({ opcode: 'RDMA_READ', sges: [a.mr.sge(0, 20_000)], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
      expect(pair.completions(a.cq, 1)).toHaveLength(1);
    }
    expect(verdict(pair, 'RDMA_READ')).toMatchObject({ owner: 'pacing', stage: 't4_t3' });
  });

  it('not pacing when READ responses come at the rate of the link', async () => {
    const pair = await open({ rateBps: 50e6 });
    const { a, b } = pair;
    for (let n = 0; n < 8; n++) {
      a.qp.postSend({ opcode: 'RDMA_READ', sges: [a.mr.sge(0, 20_000)], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
      expect(pair.completions(a.cq, 1)).toHaveLength(1);
    }
    expect(verdict(pair, 'RDMA_READ')).toMatchObject({ owner: 'network', stage: 't4_t3' });
  });

  it('the sender when every message waits behind a fence', async () => {
    const pair = await open({ delayNs: 500_000 });
    for (let n = 0; n < 20; n++) {
      const { a, b } = pair;
      a.qp.postSend({ opcode: 'RDMA_READ', sges: [a.mr.sge(0, 64)], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
      write(pair, 64, true);
    }
    expect(pair.completions(pair.a.cq, 40)).toHaveLength(40);
    expect(verdict(pair)).toMatchObject({ owner: 'sender', stage: 't2_t1' });
    expect(verdict(pair).because).toMatch(/fence/);
  });

  it('the sender when fast registration waits behind a fence for READs, as long as the way is', async () => {
    const pair = await open({ delayNs: 500_000 });
    const { a, b } = pair;
    const mr = await a.pd.allocFastRegMr(4096);
    for (let n = 0; n < 10; n++) {
      a.qp.postSend(
        { opcode: 'RDMA_READ', sges: [a.mr.sge(0, 64)], remoteAddr: b.mr.addr, rkey: b.mr.rkey },
        { opcode: 'REG_MR', mr, key: mr.nextKey(), offset: 0, length: 64, iova: 0x1000n, access: 0, fence: true },
        { opcode: 'LOCAL_INV', invalidateRkey: mr.key },
      );
      expect(pair.completions(a.cq, 3)).toHaveLength(3);
    }
    expect(verdict(pair, 'REG_MR')).toMatchObject({ owner: 'sender', stage: 't2_t1' });
    expect(verdict(pair, 'REG_MR').because).toMatch(/fence/);
    expect(verdict(pair, 'REG_MR').meanNs).toBeGreaterThan(MS);
  });

  it('not the sender when the same messages have no fence', async () => {
    const pair = await open({ delayNs: 500_000 });
    for (let n = 0; n < 20; n++) write(pair, 64);
    expect(pair.completions(pair.a.cq, 20)).toHaveLength(20);
    expect(verdict(pair)).toMatchObject({ owner: 'network', stage: 't4_t3' });
  });

  it('the sender when the window is small', async () => {
    const pair = await open({ attrA: { inflightPackets: 2 } });
    for (let n = 0; n < 10; n++) write(pair, 30_000);
    expect(pair.completions(pair.a.cq, 10)).toHaveLength(10);
    expect(verdict(pair)).toMatchObject({ owner: 'sender', stage: 't2_t1' });
    expect(verdict(pair).because).toMatch(/window was full/);
  });

  it('the sender when work is posted faster than the link carries it', async () => {
    const pair = await open({ rateBps: 100e6, delayNs: 1000, attrA: { inflightPackets: 100_000 } });
    for (let n = 0; n < 20; n++) write(pair, 30_000);
    expect(pair.completions(pair.a.cq, 20)).toHaveLength(20);
    expect(verdict(pair)).toMatchObject({ owner: 'sender', stage: 't2_t1' });
    expect(verdict(pair).because).toMatch(/posted faster than it is sent/);
  });
});

describe('a diagnosis', () => {
  it('has a row a connection and operation, the slowest first, and none for failures', async () => {
    const pair = await open();
    const { a, b } = pair;
    oneByOne(pair, 5, 8);
    a.qp.postSend({ opcode: 'RDMA_READ', sges: [a.mr.sge(0, 500_000)], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
    pair.completions(a.cq, 1);
    a.qp.postSend({ opcode: 'SEND', sges: [a.mr.sge(0, 8)], signaled: true });
    await a.qp.modify({ state: 'ERR' });
    a.cq.poll();
    expect(diagnose(snapshot(a), []).map(({ op }) => op)).toEqual(['RDMA_READ', 'RDMA_WRITE']);
  });

  it('is empty for an endpoint that did nothing', async () => {
    const pair = await open();
    expect(diagnose(snapshot(pair.a), [snapshot(pair.b)])).toEqual([]);
  });
});
