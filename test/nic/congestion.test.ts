/** Congestion notifications and pacing of one NIC against hand-made packets. */

import { describe, expect, it } from 'vitest';
import { linkOverheadBytes } from '../../src/packet/frame.js';
import { checkIcrc, ICRC_OK, IcrcFlow } from '../../src/packet/icrc.js';
import { ECN_CE, ECN_ECT0, TxBatch } from '../../src/port/datagram.js';
import {
  connectToPeer,
  LoneNic,
  MTU,
  NIC_ADDRESS,
  PEER_ADDRESS,
  pattern,
  type SentPacket,
} from '../support/lone-nic.js';

const GBPS = 1e9;
const US = 1000;
/** What a full WRITE_MIDDLE takes on the link: BTH, payload, ICRC and what is around them. */
const MIDDLE_BYTES = 12 + MTU + 4 + linkOverheadBytes(4);
const names = (packets: SentPacket[]) => packets.map((packet) => packet.name);

function mark(nic: LoneNic, at: number, ecn = ECN_CE): void {
  nic.deliver(nic.craftRequest('RDMA_WRITE_ONLY', at, {}, pattern(8)), { ecn });
}

describe('a marked packet', () => {
  it('is answered by a congestion notification to its sender: priority 6, DSCP 48, not to be marked itself', async () => {
    const nic = await LoneNic.create();
    mark(nic, 0);
    expect(nic.take()).toMatchObject([{ name: 'CNP', dscp: 48, ecn: 0, ackReq: false }]);
    expect(nic.device.counters()).toMatchObject({
      np_ecn_marked_roce_packets: 1,
      np_cnp_sent: 1,
      rx_write_requests: 1,
    });
  });

  it('is answered again only after the interval', async () => {
    const nic = await LoneNic.create();
    mark(nic, 0);
    mark(nic, 1);
    expect(names(nic.advance(49_999))).toEqual(['CNP']);
    mark(nic, 2);
    expect(names(nic.advance(1))).toEqual([]);
    mark(nic, 3);
    expect(names(nic.take())).toEqual(['CNP']);
    expect(nic.device.counters()).toMatchObject({ np_ecn_marked_roce_packets: 4, np_cnp_sent: 2 });
  });

  it('is answered at a tick where the timer of the receiver runs free', async () => {
    const nic = await LoneNic.create({ attr: { rateControl: { name: 'none', cnpPhase: 1 } } });
    mark(nic, 0);
    mark(nic, 1);
    expect(names(nic.take())).toEqual([]);
    expect(names(nic.advance(49_999))).toEqual([]);
    expect(names(nic.advance(1))).toEqual(['CNP']);
    expect(names(nic.advance(60_000))).toEqual([]);
    mark(nic, 2);
    expect(names(nic.advance(39_999))).toEqual([]);
    expect(names(nic.advance(1))).toEqual(['CNP']);
    expect(nic.device.counters()).toMatchObject({ np_ecn_marked_roce_packets: 3, np_cnp_sent: 2 });
  });

  it('is answered every time where the sender is to coalesce', async () => {
    const nic = await LoneNic.create({ attr: { rateControl: { name: 'none', cnpIntervalNs: 0 } } });
    for (let at = 0; at < 5; at++) mark(nic, at);
    expect(names(nic.take())).toEqual(Array(5).fill('CNP'));
  });

  it('is answered in RTR too, where READ requests arrive', async () => {
    const nic = await LoneNic.create({ state: 'RTR' });
    mark(nic, 0);
    expect(names(nic.take())).toEqual(['CNP']);
  });

  it.each([0, 1, 2])('one that is not marked (ECN %i) is not answered', async (ecn) => {
    const nic = await LoneNic.create();
    mark(nic, 0, ecn);
    expect(nic.take()).toEqual([]);
    expect(nic.device.counters()).toMatchObject({ np_ecn_marked_roce_packets: 0, np_cnp_sent: 0 });
  });

  it('with a bad ICRC is not answered', async () => {
    const nic = await LoneNic.create();
    nic.deliver(nic.craftRequest('RDMA_WRITE_ONLY', 0, {}, pattern(8)), { ecn: ECN_CE, bit: 300 });
    expect(nic.take()).toEqual([]);
    expect(nic.device.counters()).toMatchObject({ rx_icrc_errors: 1, np_ecn_marked_roce_packets: 0 });
  });

  it('is told of before any data: notifications have a queue of their own', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend({ opcode: 'SEND', sges: [nic.mr.sge(0, 3 * MTU)] });
    mark(nic, 0);
    expect(names(nic.take())).toEqual(['CNP', 'SEND_FIRST', 'SEND_MIDDLE', 'SEND_LAST']);
  });
});

/** A packet that a switch might mark. */
function sendOne(nic: LoneNic): void {
  nic.qp.postSend({ opcode: 'SEND' });
  nic.advance(US);
}

describe('a congestion notification', () => {
  it('cuts the rate of the QP it names', async () => {
    const nic = await LoneNic.create({ attr: { rateControl: { name: 'dcqcn', linkRateBps: 10 * GBPS } } });
    sendOne(nic);
    nic.congestionNotification();
    expect(await nic.qp.query()).toMatchObject({ rateBps: 5 * GBPS, targetRateBps: 10 * GBPS, alpha: 1 });
    expect(nic.device.counters()).toMatchObject({ rp_cnp_handled: 1, rp_cnp_ignored: 0, rp_cnp_suspicious: 0 });
    nic.advance(55 * US);
    expect(await nic.qp.query()).toMatchObject({ rateBps: 7.5 * GBPS, alpha: 255 / 256 });
  });

  it('is ignored, and counted, where the rate is not controlled by DCQCN', async () => {
    const nic = await LoneNic.create();
    nic.congestionNotification();
    expect(nic.device.counters()).toMatchObject({ rp_cnp_handled: 0, rp_cnp_ignored: 1 });
    expect(nic.take()).toEqual([]);
  });

  it('is ignored when it comes too soon after the last cut', async () => {
    const rateControl = { name: 'dcqcn', decreaseIntervalNs: 50 * US } as const;
    const nic = await LoneNic.create({ attr: { rateControl } });
    sendOne(nic);
    sendOne(nic);
    nic.congestionNotification();
    nic.congestionNotification();
    expect(nic.device.counters()).toMatchObject({ rp_cnp_handled: 1, rp_cnp_ignored: 1 });
  });

  it('with a bad ICRC changes nothing', async () => {
    const nic = await LoneNic.create({ attr: { rateControl: { name: 'dcqcn' } } });
    nic.congestionNotification({ bit: 130 });
    expect(nic.device.counters()).toMatchObject({ rp_cnp_handled: 0, rx_icrc_errors: 1 });
    expect((await nic.qp.query()).rateBps).toBe(40 * GBPS);
  });

  it('for a QP that is not connected is dropped', async () => {
    const nic = await LoneNic.create({ state: 'INIT' });
    nic.congestionNotification();
    expect(nic.device.counters()).toMatchObject({ rp_cnp_handled: 0, rx_drop_qp_state: 1 });
  });

  it('for a UD QP is dropped', async () => {
    const nic = await LoneNic.create({ qp: { type: 'UD' }, state: 'RESET' });
    nic.congestionNotification();
    expect(nic.device.counters()).toMatchObject({ rp_cnp_handled: 0, rx_drop_qp_type: 1 });
  });
});

describe('data packets', () => {
  const read = { dmaLength: 3 * MTU };

  it.each([
    ['none', 0],
    ['fixed', 0],
    ['dcqcn', ECN_ECT0],
    ['timely', 0],
    ['patched-timely', 0],
  ] as const)('with %s carry ECN %i', async (name, ecn) => {
    const nic = await LoneNic.create({ attr: { rateControl: { name } } });
    nic.qp.postSend({ opcode: 'SEND', sges: [nic.mr.sge(0, 2 * MTU)] });
    nic.request('RDMA_READ_REQUEST', 0, read);
    const sent = nic.advance(US * 1000).filter((packet) => packet.payload.length > 0);
    expect(sent.map((packet) => packet.ecn)).toEqual(Array(5).fill(ecn));
  });

  it('carry what the address vector says, if it says something', async () => {
    const av = { address: PEER_ADDRESS, ecn: 1 };
    const nic = await LoneNic.create({ attr: { rateControl: { name: 'dcqcn' }, av } });
    nic.qp.postSend({ opcode: 'SEND', sges: [nic.mr.sge(0, 8)] });
    expect(nic.take()).toMatchObject([{ ecn: 1 }]);
  });

  it('and CNPs have the identification that the kernel gives them in trains: what ECN says is known when the ICRC is made', async () => {
    const nic = await LoneNic.create({ attr: { rateControl: { name: 'dcqcn', burstBytes: 1e6 } } });
    const batch = new TxBatch(16, NIC_ADDRESS, 8);
    nic.qp.postSend({ opcode: 'SEND', sges: [nic.mr.sge(0, 6 * MTU)] });
    nic.request('RDMA_WRITE_ONLY', 0, { ackReq: true }, pattern(8));
    mark(nic, 1);
    nic.host.nic.transmit(batch, 0);
    expect([...batch.ecns.subarray(0, batch.count)].sort()).toEqual([0, 0, 2, 2, 2, 2, 2, 2]);
    const flow = new IcrcFlow(NIC_ADDRESS, PEER_ADDRESS, batch.sourcePorts[0], 4791);
    for (let slot = 0; slot < batch.count; slot++) {
      const bytes = batch.payloadView(slot);
      expect(checkIcrc(flow, bytes, 0, bytes.length, batch.trainIndex(slot)), `slot ${slot}`).toBe(ICRC_OK);
    }
  });

  it('acknowledgements cannot be marked', async () => {
    const nic = await LoneNic.create({ attr: { rateControl: { name: 'dcqcn' } } });
    nic.request('RDMA_WRITE_ONLY', 0, { ackReq: true }, pattern(8));
    expect(nic.take()).toMatchObject([{ name: 'ACKNOWLEDGE', ecn: 0 }]);
  });
});

describe('pacing', () => {
  const paced = { attr: { rateControl: { name: 'fixed', rateBps: GBPS } } } as const;
  const gaps = (packets: SentPacket[]) => packets.slice(1).map((packet, i) => packet.timeNs - packets[i].timeNs);

  it('spaces requests by their time on a link of that rate', async () => {
    const nic = await LoneNic.create(paced);
    nic.qp.postSend({ opcode: 'SEND', sges: [nic.mr.sge(0, 40 * MTU)] });
    const sent = nic.advance(1e6);
    expect(sent).toHaveLength(40);
    for (const gap of gaps(sent).slice(0, -1)) expect(gap).toBeCloseTo(MIDDLE_BYTES * 8, 3);
  });

  it('spaces READ responses: the responder is the one that sends data', async () => {
    const nic = await LoneNic.create({ ...paced, state: 'RTR' });
    nic.request('RDMA_READ_REQUEST', 0, { dmaLength: 40 * MTU });
    const sent = nic.advance(1e6);
    expect(sent).toHaveLength(40);
    for (const gap of gaps(sent).slice(1, -1)) expect(gap).toBeCloseTo(MIDDLE_BYTES * 8, 3);
  });

  it('in bursts sends so many bytes back to back, and rests until the rate is kept', async () => {
    const rateControl = { name: 'fixed', rateBps: GBPS, burstBytes: 4 * MIDDLE_BYTES } as const;
    const nic = await LoneNic.create({ attr: { rateControl } });
    nic.qp.postSend({ opcode: 'SEND', sges: [nic.mr.sge(0, 16 * MTU)] });
    const times = nic.advance(1e6).map((packet) => packet.timeNs);
    const burstNs = 4 * MIDDLE_BYTES * 8;
    expect(times).toHaveLength(16);
    times.forEach((time, i) => {
      expect(time).toBeCloseTo(Math.floor(i / 4) * burstNs, 3);
    });
  });

  it('does not hold back acknowledgements', async () => {
    const nic = await LoneNic.create({ attr: { rateControl: { name: 'fixed', rateBps: 1e6 } } });
    nic.qp.postSend({ opcode: 'SEND', sges: [nic.mr.sge(0, 40 * MTU)] });
    nic.advance(US);
    nic.request('RDMA_WRITE_ONLY', 0, { ackReq: true }, pattern(8));
    expect(names(nic.take())).toEqual(['ACKNOWLEDGE']);
  });

  it('keeps nobody else waiting: a slow and a fast flow on one NIC each have their own rate', async () => {
    const attr = { inflightPackets: 10_000 };
    const nic = await LoneNic.create({ attr: { ...attr, rateControl: { name: 'fixed', rateBps: 10e6 } } });
    const fast = await nic.pd.createQp({ sendCq: nic.cq });
    await connectToPeer(fast, 'RTS', { ...attr, rateControl: { name: 'fixed', rateBps: GBPS } });
    for (const qp of [nic.qp, fast]) qp.postSend({ opcode: 'SEND', sges: [nic.mr.sge(0, 200 * MTU)] });
    const milliseconds = 0.5;
    const sent = nic.advance(milliseconds * 1e6);
    const { sourcePort } = await fast.query();
    const rateOf = (isFast: boolean) => {
      const packets = sent.filter((packet) => (packet.sourcePort === sourcePort) === isFast).length;
      return (packets * MIDDLE_BYTES * 8) / (milliseconds / 1e3);
    };
    expect(rateOf(true) / GBPS).toBeCloseTo(1, 1);
    expect(rateOf(false) / 10e6).toBeLessThan(1.5);
  });

  it('congestion of one flow does not leak: notifications for one leave the other at the line rate', async () => {
    const rateControl = { name: 'dcqcn', linkRateBps: GBPS, minimumRateBps: 1e6, additiveIncreaseBps: 1e4 } as const;
    const nic = await LoneNic.create({ attr: { inflightPackets: 10_000, rateControl } });
    const free = await nic.pd.createQp({ sendCq: nic.cq });
    await connectToPeer(free, 'RTS', { inflightPackets: 10_000, rateControl });
    for (const qp of [nic.qp, free]) qp.postSend({ opcode: 'SEND', sges: [nic.mr.sge(0, 250 * MTU)] });
    const sent: SentPacket[] = nic.advance(1); // A notification before the first packet would be suspicious.
    for (let us = 0; us < 500; us += 50) {
      nic.congestionNotification();
      sent.push(...nic.advance(50 * US));
    }
    const { sourcePort } = await free.query();
    const packetsOfFree = sent.filter((packet) => packet.sourcePort === sourcePort);
    expect((await nic.qp.query()).rateBps).toBeLessThan(GBPS / 100);
    expect((await free.query()).rateBps).toBe(GBPS);
    expect((packetsOfFree.length * MIDDLE_BYTES * 8) / 0.5e-3 / GBPS).toBeCloseTo(1, 1);
    expect(sent.length - packetsOfFree.length).toBeLessThan(packetsOfFree.length / 5);
  });

  it('is nothing for UD queue pairs', async () => {
    const nic = await LoneNic.create();
    const qp = await nic.pd.createQp({ type: 'UD', sendCq: nic.cq });
    const attr = { state: 'INIT', pkeyIndex: 0, port: 1, qkey: 1 } as const;
    await expect(qp.modify({ ...attr, rateControl: { name: 'fixed' } })).rejects.toThrow(/RATE_CONTROL/);
    await qp.modify(attr);
    expect(await qp.query()).toMatchObject({ rateControl: { name: 'none' }, rateBps: Number.POSITIVE_INFINITY });
  });

  it('refuses parameters that contradict each other, and keeps the rate it had', async () => {
    const nic = await LoneNic.create({ attr: { rateControl: { name: 'fixed', rateBps: GBPS } } });
    const wrong = { name: 'dcqcn', minimumRateBps: 2e9, linkRateBps: 1e9 } as const;
    await expect(nic.qp.modify({ rateControl: wrong })).rejects.toMatchObject({ code: 'ERR_ROCE_CONFLICT' });
    expect(await nic.qp.query()).toMatchObject({ rateControl: { name: 'fixed' }, rateBps: GBPS });
  });

  it('takes a new rate at once, even while it waits for the old one', async () => {
    const nic = await LoneNic.create({ attr: { rateControl: { name: 'fixed', rateBps: 1e3 } } });
    nic.qp.postSend({ opcode: 'SEND', sges: [nic.mr.sge(0, 20 * MTU)] });
    expect(nic.advance(1e9).length).toBeLessThan(3);
    await nic.qp.modify({ rateControl: { name: 'fixed', rateBps: GBPS } });
    expect(nic.advance(1e6).length).toBeGreaterThan(17);
  });
});
