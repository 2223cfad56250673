import { describe, expect, it } from 'vitest';
import { STAGES, type StageName } from '../../src/verbs/estats/stages.js';
import { createPair, type Pair, type PairOptions } from '../support/pair.js';

const DELAY_NS = 50_000;

async function pairWithEstats(options: PairOptions = {}): Promise<Pair> {
  return createPair({ delayNs: DELAY_NS, rateBps: 10e9, mtu: 1024, estats: {}, ...options });
}

function write(pair: Pair, bytes: number, extra: { signaled?: boolean; fence?: boolean } = {}): void {
  const { a, b } = pair;
  a.qp.postSend({
    opcode: 'RDMA_WRITE',
    sges: [a.mr.sge(0, bytes)],
    remoteAddr: b.mr.addr,
    rkey: b.mr.rkey,
    ...extra,
  });
}

function read(pair: Pair, bytes: number): void {
  const { a, b } = pair;
  a.qp.postSend({ opcode: 'RDMA_READ', sges: [a.mr.sge(0, bytes)], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
}

/** Mean of each stage of one group of A, in nanoseconds. */
function means(pair: Pair, op: string, status = 'SUCCESS'): Record<StageName, number> & { count: number } {
  const group = pair.a.device.estats!.currentWindow().groups.find((g) => g.op === op && g.status === status);
  if (group === undefined) throw new Error(`no group ${op} ${status}`);
  const values = STAGES.map((stage, i) => [stage, group.stages[i].sumNs / Math.max(1, group.stages[i].count)]);
  return { ...(Object.fromEntries(values) as Record<StageName, number>), count: group.stages[6].count };
}

describe('the stages of a work request', () => {
  it('add up to what the application sees', async () => {
    const pair = await pairWithEstats();
    for (let n = 0; n < 5; n++) write(pair, 20_000);
    read(pair, 50_000);
    pair.completions(pair.a.cq, 6);
    for (const op of ['RDMA_WRITE', 'RDMA_READ']) {
      const stages = means(pair, op);
      const sum = stages.t2_t1 + stages.t3_t2 + stages.t4_t3 + stages.t5_t4 + stages.t6_t5;
      expect(sum).toBeCloseTo(stages.t6_t1, 0);
      expect(stages.t5_t1 + stages.t6_t5).toBeCloseTo(stages.t6_t1, 0);
      expect(stages.t6_t1).toBeGreaterThan(2 * DELAY_NS);
    }
  });

  it('T3 - T2 is what the packets of the message take on the wire', async () => {
    const pair = await pairWithEstats();
    write(pair, 64 * 1024);
    pair.completions(pair.a.cq, 1);
    const stages = means(pair, 'RDMA_WRITE');
    // 64 packets; T3 is when the last one begins.
    const packetNs = ((1024 + 16 + 66) * 8) / 10;
    expect(stages.t3_t2).toBeGreaterThan(63 * packetNs);
    expect(stages.t3_t2).toBeLessThan(64 * packetNs + 1000);
    expect(stages.t2_t1).toBe(0);
  });

  it('of an unreliable connection hold no round trip: done is when the last packet has left', async () => {
    const pair = await pairWithEstats({ qp: { type: 'UC' } });
    write(pair, 64 * 1024);
    pair.completions(pair.a.cq, 1);
    const stages = means(pair, 'RDMA_WRITE');
    const packetNs = ((1024 + 16 + 66) * 8) / 10;
    expect(stages.t3_t2).toBeGreaterThan(63 * packetNs);
    expect(stages.t4_t3).toBe(0);
    expect(stages.t6_t1).toBeLessThan(65 * packetNs);
  });

  it('T4 - T3 holds the round trip, T6 - T5 the time nobody polls', async () => {
    const pair = await pairWithEstats();
    write(pair, 8);
    pair.run({ untilNs: pair.events.nowNs + 1_000_000 });
    pair.a.cq.poll();
    const stages = means(pair, 'RDMA_WRITE');
    expect(stages.t4_t3).toBeGreaterThan(2 * DELAY_NS);
    expect(stages.t4_t3).toBeLessThan(2 * DELAY_NS + 1000);
    expect(stages.t5_t4).toBe(0);
    expect(stages.t6_t5).toBeCloseTo(1_000_000 - stages.t5_t1, 0);
  });

  it('T2 - T1 holds the wait for a fence', async () => {
    const pair = await pairWithEstats();
    read(pair, 8);
    write(pair, 8, { fence: true });
    pair.completions(pair.a.cq, 2);
    expect(means(pair, 'RDMA_WRITE').t2_t1).toBeGreaterThan(2 * DELAY_NS);
    expect(means(pair, 'RDMA_READ').t2_t1).toBe(0);
  });

  it('a packet lost and sent again leaves T2 and T3 where they were', async () => {
    const pair = await pairWithEstats({ faults: 'a>b:psn=258:once' });
    write(pair, 4096);
    pair.completions(pair.a.cq, 1);
    const stages = means(pair, 'RDMA_WRITE');
    expect(pair.a.device.counters().tx_retransmitted).toBeGreaterThan(0);
    expect(stages.t3_t2).toBeLessThan(5000);
    expect(stages.t4_t3).toBeGreaterThan(4 * DELAY_NS);
  });

  it('local operations are sent, answered and completed at one time', async () => {
    const pair = await pairWithEstats();
    const mw = await pair.a.pd.allocMw(2);
    pair.a.qp.postSend({ opcode: 'BIND_MW', mw, rkey: mw.nextRkey(), mr: pair.a.mr, offset: 0, length: 8, access: 0 });
    pair.completions(pair.a.cq, 1);
    const stages = means(pair, 'BIND_MW');
    expect([stages.t3_t2, stages.t4_t3, stages.t5_t4]).toEqual([0, 0, 0]);
  });

  it('T4 of a READ under selective repeat is its last answer, T5 comes when the missing one is there', async () => {
    const pair = await pairWithEstats({
      recovery: 'selective-repeat',
      faults: 'b>a:psn=260:once',
    });
    read(pair, 16 * 1024);
    pair.completions(pair.a.cq, 1);
    expect(means(pair, 'RDMA_READ').t5_t4).toBeGreaterThan(DELAY_NS);
  });

  it('what is not signaled makes no sample', async () => {
    const pair = await pairWithEstats();
    for (let n = 0; n < 4; n++) write(pair, 8, { signaled: n === 3 });
    pair.completions(pair.a.cq, 1);
    expect(means(pair, 'RDMA_WRITE').count).toBe(1);
  });

  it('failures are groups of their own, with the whole latency only', async () => {
    const pair = await pairWithEstats();
    const { a, b } = pair;
    a.qp.postSend({ opcode: 'RDMA_WRITE', sges: [a.mr.sge(0, 8)], remoteAddr: b.mr.addr, rkey: b.mr.rkey + 1 });
    write(pair, 8);
    pair.completions(a.cq, 2);
    expect(means(pair, 'RDMA_WRITE', 'REM_ACCESS_ERR')).toMatchObject({ count: 1, t2_t1: 0 });
    expect(means(pair, 'RDMA_WRITE', 'REM_ACCESS_ERR').t6_t1).toBeGreaterThan(2 * DELAY_NS);
    expect(means(pair, 'RDMA_WRITE', 'WR_FLUSH_ERR').count).toBe(1);
  });

  it('the bytes on the wire are the same with telemetry and without', async () => {
    const sent = async (options: PairOptions) => {
      const packets: string[] = [];
      const pair = await createPair({
        ...options,
        faults: 'random=0.05',
        onPacket: (direction, bytes) => packets.push(direction + Buffer.from(bytes).toString('hex')),
      });
      for (let n = 0; n < 10; n++) write(pair, 30_000);
      read(pair, 30_000);
      pair.completions(pair.a.cq, 11);
      return packets;
    };
    expect(await sent({ estats: {} })).toEqual(await sent({}));
  });
});

describe('the telemetry page', () => {
  function connection(pair: Pair) {
    return [...pair.a.device.estats!.connections][0];
  }

  it('counts packets of the connection as the NIC counts all', async () => {
    const pair = await pairWithEstats({ faults: 'random=0.05' });
    for (let n = 0; n < 20; n++) write(pair, 30_000);
    pair.completions(pair.a.cq, 20);
    const device = pair.a.device.counters();
    const { counters } = connection(pair).totals(pair.events.nowNs);
    expect(counters).toMatchObject({
      tx_packets: device.tx_packets,
      tx_bytes: device.tx_bytes,
      rx_packets: device.rx_accepted,
      tx_retransmitted: device.tx_retransmitted,
      packet_seq_err: device.packet_seq_err,
      local_ack_timeout_err: device.local_ack_timeout_err,
    });
    expect(device.tx_retransmitted).toBeGreaterThan(0);
    const responder = [...pair.b.device.estats!.connections][0].totals(pair.events.nowNs).counters;
    expect(responder.out_of_sequence).toBe(pair.b.device.counters().out_of_sequence);
    expect(responder.duplicate_request).toBe(pair.b.device.counters().duplicate_request);
  });

  it('says how long the send side waited, and for what', async () => {
    const pair = await pairWithEstats({ attrA: { inflightPackets: 4 } });
    write(pair, 64 * 1024);
    pair.completions(pair.a.cq, 1);
    const { waitsNs, activeNs } = connection(pair).totals(pair.events.nowNs);
    // 16 windows of 4 packets, each a round trip.
    expect(waitsNs.window).toBeGreaterThan(14 * 2 * DELAY_NS);
    expect(waitsNs.window).toBeLessThan(activeNs);
    expect(waitsNs).toMatchObject({ rnr: 0, fence: 0, readLimit: 0 });
  });

  it('counts the time in which the pacer held packets back', async () => {
    const pair = await pairWithEstats({ attrA: { rateControl: { name: 'fixed', rateBps: 1e9 } } });
    write(pair, 64 * 1024);
    pair.completions(pair.a.cq, 1);
    const { waitsNs, activeNs } = connection(pair).totals(pair.events.nowNs);
    // 64 KiB at 1 Gb/s take 524 us, on a link that carries them in a tenth of that.
    expect(waitsNs.pacing).toBeGreaterThan(450_000);
    expect(waitsNs.pacing).toBeLessThan(activeNs);
    expect(waitsNs).toMatchObject({ window: 0, rnr: 0, fence: 0, readLimit: 0 });
  });

  it('counts the time a receiver was not ready', async () => {
    const pair = await pairWithEstats({ attrB: { minRnrTimer: 14 } });
    const { a, b } = pair;
    a.qp.postSend({ opcode: 'SEND', sges: [a.mr.sge(0, 8)] });
    pair.run({ untilNs: pair.events.nowNs + 500_000 });
    expect(connection(pair).totals(pair.events.nowNs).waitsNs.rnr).toBeGreaterThan(300_000);
    b.qp.postRecv({ sges: [b.mr.sge(0, 8)] });
    pair.completions(a.cq, 1);
    const { waitsNs, counters } = connection(pair).totals(pair.events.nowNs);
    expect(waitsNs.rnr).toBeCloseTo(1_280_000, -4);
    expect(counters.rnr_nak_received).toBe(1);
  });

  it('remembers the newest packet headers', async () => {
    const pair = await pairWithEstats();
    write(pair, 100 * 1024);
    pair.completions(pair.a.cq, 1);
    const packets = connection(pair).page.packets();
    expect(packets).toHaveLength(64);
    expect(packets.at(-1)).toMatchObject({ sent: false, psn: 0x100 + 99 });
    expect(packets.map((packet) => packet.timeNs)).toEqual(packets.map((p) => p.timeNs).sort((x, y) => x - y));
  });

  it('starts anew with a queue pair that was reset', async () => {
    const pair = await pairWithEstats();
    write(pair, 64 * 1024);
    pair.run({ untilNs: pair.events.nowNs + 20_000 });
    await pair.a.qp.modify({ state: 'RESET' });
    const { activeNs } = connection(pair).totals(pair.events.nowNs);
    pair.run({ untilNs: pair.events.nowNs + 1e9 });
    expect(connection(pair).totals(pair.events.nowNs).activeNs).toBe(activeNs);
  });
});
