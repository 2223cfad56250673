/** Send and receive queues: how much they hold, what they refuse, and shared receive queues. */

import { describe, expect, it } from 'vitest';
import type { SendWorkRequest } from '../../src/verbs/send-work-request.js';
import { connectToPeer, LoneNic, MTU, nak, pattern } from '../support/lone-nic.js';

const send = (wrId: number, more: object = {}): SendWorkRequest => ({ opcode: 'SEND', wrId, ...more });
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
const full = expect.objectContaining({ code: 'ERR_ROCE_QUEUE_FULL' });
const coded = (code: string) => expect.objectContaining({ code: `ERR_ROCE_${code}` });

describe('the event ring', () => {
  it('when it is full loses events, counts them, and keeps nobody waiting who waits for an answer or a completion', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend(send(1));
    nic.take();
    await settle();
    const waiting = nic.cq.wait();
    const { events } = nic.host;
    for (let n = 0; n <= events.depth; n++) nic.host.nic.raise(255, 0);
    nic.ack(0);
    const pd = nic.device.createPd();
    await waiting;
    await pd;
    expect(nic.done()).toMatchObject([{ wrId: 1, status: 0 }]);
    expect(nic.device.counters().events_lost).toBeGreaterThan(0);
    expect(events.fill).toBe(0);
  });
});

describe('the send queue', () => {
  it('holds what it was made for, until completions are polled', async () => {
    const nic = await LoneNic.create({ qp: { maxSendWr: 4 } });
    nic.qp.postSend(...[0, 1, 2, 3].map((wrId) => send(wrId)));
    expect(nic.qp.sendRoom).toBe(0);
    expect(() => nic.qp.postSend(send(4))).toThrow(full);
    nic.take();
    nic.ack(1);
    expect(() => nic.qp.postSend(send(4))).toThrow(full); // Done, but not known to be.
    expect(nic.done()).toHaveLength(2);
    expect(nic.qp.sendRoom).toBe(2);
    nic.qp.postSend(send(4), send(5));
    expect(() => nic.qp.postSend(send(6))).toThrow(full);
  });

  it('posts what stands before the refused one', async () => {
    const nic = await LoneNic.create({ qp: { maxSendWr: 2 } });
    expect(() => nic.qp.postSend(send(0), send(1), send(2))).toThrow(full);
    expect(nic.take()).toHaveLength(2);
  });

  it('a polled completion stands for the unsignaled ones before it', async () => {
    const nic = await LoneNic.create({ qp: { maxSendWr: 4 } });
    for (let round = 0; round < 10; round++) {
      nic.qp.postSend(...[0, 1, 2].map((wrId) => send(wrId, { signaled: false })), send(round));
      nic.take();
      nic.ack(4 * round + 3);
      expect(nic.done().map((wc) => wc.wrId)).toEqual([round]);
    }
  });

  it.each([
    ['too many elements', { sges: Array(5).fill({ addr: 0n, length: 1, lkey: 0 }) }, 'LIMIT'],
    ['an element of negative length', { sges: [{ addr: 0n, length: -1, lkey: 0 }] }, 'OUT_OF_RANGE'],
    ['an element of half a byte', { sges: [{ addr: 0n, length: 0.5, lkey: 0 }] }, 'OUT_OF_RANGE'],
    [
      'more than 2^31 bytes',
      {
        sges: [
          { addr: 0n, length: 2 ** 31, lkey: 0 },
          { addr: 0n, length: 1, lkey: 0 },
        ],
      },
      'OUT_OF_RANGE',
    ],
    ['too much inline data', { inline: new Uint8Array(65) }, 'LIMIT'],
    [
      'inline data to be read into',
      { opcode: 'RDMA_READ', inline: new Uint8Array(8), remoteAddr: 0n, rkey: 0 },
      'CONFLICT',
    ],
    ['a remote address of 65 bits', { opcode: 'RDMA_WRITE', remoteAddr: 2n ** 64n, rkey: 0 }, 'OUT_OF_RANGE'],
    ['a remote address that is no bigint', { opcode: 'RDMA_WRITE', remoteAddr: 4096, rkey: 0 }, 'OUT_OF_RANGE'],
    ['a local address that is no bigint', { sges: [{ addr: 4096, length: 1, lkey: 0 }] }, 'INVALID_ARGUMENT'],
    ['a key of 33 bits', { opcode: 'RDMA_WRITE', remoteAddr: 0n, rkey: 2 ** 32 }, 'OUT_OF_RANGE'],
    ['immediate data that is no 32-bit number', { opcode: 'SEND_WITH_IMM', immediate: -1 }, 'OUT_OF_RANGE'],
  ])('refuses %s', async (_, more, code) => {
    const nic = await LoneNic.create();
    expect(() => nic.qp.postSend({ opcode: 'SEND', ...more } as SendWorkRequest)).toThrow(coded(code));
    expect(nic.take()).toEqual([]);
    nic.qp.postSend(send(1)); // The queue is as it was.
    expect(nic.take()).toMatchObject([{ at: 0 }]);
  });

  it.each([
    { maxSendWr: 0 },
    { maxSendWr: 2 ** 21 },
    { maxSendSge: 0 },
    { maxSendSge: 33 },
    { maxRecvSge: 33 },
    { maxRecvWr: 1.5 },
  ])('cannot be made with %j', async (init) => {
    const nic = await LoneNic.create();
    await expect(nic.pd.createQp({ sendCq: nic.cq, ...init })).rejects.toEqual(coded('OUT_OF_RANGE'));
  });

  it('works at a depth of one', async () => {
    const nic = await LoneNic.create({ qp: { maxSendWr: 1, maxRecvWr: 1 } });
    for (let n = 0; n < 5; n++) {
      nic.qp.postSend(send(n));
      nic.take();
      nic.ack(n);
      expect(nic.done().map((wc) => wc.wrId)).toEqual([n]);
      nic.qp.postRecv({ wrId: n });
      nic.request('SEND_ONLY', n);
      expect(nic.received().map((wc) => wc.wrId)).toEqual([n]);
    }
  });
});

describe('the receive queue', () => {
  it('holds what it was made for, until completions are polled', async () => {
    const nic = await LoneNic.create({ qp: { maxRecvWr: 2 } });
    nic.qp.postRecv({ wrId: 0 });
    nic.qp.postRecv({ wrId: 1 });
    expect(() => nic.qp.postRecv({ wrId: 2 })).toThrow(full);
    nic.request('SEND_ONLY', 0);
    expect(() => nic.qp.postRecv({ wrId: 2 })).toThrow(full);
    expect(nic.received()).toHaveLength(1);
    nic.qp.postRecv({ wrId: 2 });
    expect(() => nic.qp.postRecv({ wrId: 3 })).toThrow(full);
  });
});

describe('a shared receive queue', () => {
  async function withTwoQps(depth = 8) {
    const nic = await LoneNic.create();
    const srq = await nic.pd.createSrq({ depth });
    const qps = [];
    for (let k = 0; k < 2; k++) {
      const qp = await nic.pd.createQp({ sendCq: nic.cq, recvCq: nic.recvCq, srq });
      await connectToPeer(qp);
      qps.push(qp);
    }
    return { nic, srq, qps };
  }

  it('serves its QPs in the order in which their messages begin', async () => {
    const { nic, srq, qps } = await withTwoQps();
    for (let wrId = 0; wrId < 4; wrId++) srq.postRecv({ wrId, sges: [nic.mr.sge(wrId * 1000, 1000)] });
    nic.request('SEND_FIRST', 0, { destQpn: qps[0].qpn }, pattern(MTU, 1));
    nic.request('SEND_ONLY', 0, { destQpn: qps[1].qpn }, pattern(10, 2));
    nic.request('SEND_LAST', 1, { destQpn: qps[0].qpn }, pattern(10, 3));
    expect(nic.received().map((wc) => [wc.wrId, wc.qpn])).toEqual([
      [1, qps[1].qpn],
      [0, qps[0].qpn],
    ]);
    expect(nic.mr.bytes.subarray(1000, 1010)).toEqual(pattern(10, 2));
  });

  it('that is empty makes any of them not ready', async () => {
    const { nic, srq, qps } = await withTwoQps();
    srq.postRecv({ wrId: 0 });
    nic.request('SEND_ONLY', 0, { destQpn: qps[0].qpn });
    nic.request('SEND_ONLY', 0, { destQpn: qps[1].qpn });
    expect(nic.take()).toMatchObject([nak(0x2c, 0)]);
  });

  it('tells once when it falls below its limit', async () => {
    const { nic, srq, qps } = await withTwoQps();
    let events = 0;
    nic.device.events.on('SRQ_LIMIT_REACHED', (which) => {
      expect(which).toBe(srq);
      events++;
    });
    for (let wrId = 0; wrId < 6; wrId++) srq.postRecv({ wrId });
    await srq.setLimit(4);
    const receiveOne = async (at: number) => {
      nic.request('SEND_ONLY', at, { destQpn: qps[0].qpn });
      await settle();
      return events;
    };
    expect([await receiveOne(0), await receiveOne(1), await receiveOne(2), await receiveOne(3)]).toEqual([0, 0, 1, 1]);
    await srq.setLimit(2);
    expect(await receiveOne(4)).toBe(2);
  });

  it.each([
    ['with receives', 2],
    ['empty', 0],
  ])('reports a limit above its fill level once, with the next message at the latest: %s', async (_, receives) => {
    const { nic, srq, qps } = await withTwoQps();
    for (let wrId = 0; wrId < receives; wrId++) srq.postRecv({ wrId });
    let events = 0;
    nic.device.events.on('SRQ_LIMIT_REACHED', () => events++);
    await srq.setLimit(5);
    nic.request('SEND_ONLY', 0, { destQpn: qps[0].qpn });
    await settle();
    expect(events).toBe(1);
    nic.request('SEND_ONLY', 0, { destQpn: qps[1].qpn });
    await settle();
    expect(events).toBe(1);
  });

  it('without a limit reports none', async () => {
    const { nic, srq, qps } = await withTwoQps();
    let events = 0;
    nic.device.events.on('SRQ_LIMIT_REACHED', () => events++);
    srq.postRecv({ wrId: 0 });
    await srq.setLimit(5);
    await srq.setLimit(0);
    nic.request('SEND_ONLY', 0, { destQpn: qps[0].qpn });
    await settle();
    expect(events).toBe(0);
  });

  it('is not flushed with a QP; LAST_WQE_REACHED comes instead, after an error and after modify', async () => {
    const { nic, srq, qps } = await withTwoQps();
    for (let wrId = 0; wrId < 3; wrId++) srq.postRecv({ wrId, sges: [nic.mr.sge()] });
    nic.request('SEND_FIRST', 0, { destQpn: qps[0].qpn }, pattern(MTU));
    nic.request('SEND_FIRST', 1, { destQpn: qps[0].qpn }, pattern(MTU));
    expect(nic.received().map((wc) => [wc.wrId, wc.status])).toEqual([[0, 9]]);
    await settle();
    expect(nic.asyncEvents).toEqual(['QP_FATAL', 'QP_LAST_WQE_REACHED']);
    await qps[1].modify({ state: 'ERR' });
    await settle();
    expect(nic.asyncEvents).toEqual(['QP_FATAL', 'QP_LAST_WQE_REACHED', 'QP_LAST_WQE_REACHED']);
    expect(nic.received()).toEqual([]);
  });

  it('takes no receives at the QP itself', async () => {
    const { qps } = await withTwoQps();
    expect(() => qps[0].postRecv()).toThrow(coded('CONFLICT'));
  });

  it('loses no element to QPs that are closed or reset, whatever was in flight or not polled', async () => {
    const { nic, srq, qps } = await withTwoQps(4);
    for (let wrId = 0; wrId < 4; wrId++) srq.postRecv({ wrId, sges: [nic.mr.sge()] });
    nic.request('SEND_ONLY', 0, { destQpn: qps[0].qpn }, pattern(8)); // Completed, not polled.
    nic.request('SEND_FIRST', 1, { destQpn: qps[0].qpn }, pattern(MTU)); // In progress.
    nic.request('SEND_FIRST', 0, { destQpn: qps[1].qpn }, pattern(MTU)); // In progress.
    await qps[0].close();
    await qps[1].modify({ state: 'RESET' });
    expect(nic.received()).toEqual([]);
    for (const wrId of [10, 11, 12]) srq.postRecv({ wrId });
    expect(() => srq.postRecv({ wrId: 13 })).toThrow(full);
  });
});

describe('memory windows by work request', () => {
  it('open and close a part of a region for the peer', async () => {
    const nic = await LoneNic.create();
    const mw = await nic.pd.allocMw(2);
    const rkey = mw.nextRkey();
    nic.qp.postSend({ opcode: 'BIND_MW', wrId: 1, mw, rkey, mr: nic.mr, offset: 100, length: 50, access: 2 | 4 });
    expect(nic.done()).toMatchObject([{ wrId: 1, status: 0, opcode: 'BIND_MW' }]);
    const va = nic.mr.addr + 100n;
    nic.request('RDMA_WRITE_ONLY', 0, { va, rkey, ackReq: true }, pattern(50));
    expect(nic.take()).toMatchObject([{ syndrome: 0x1f }]);
    expect(nic.mr.bytes.subarray(100, 150)).toEqual(pattern(50));
    nic.qp.postSend({ opcode: 'LOCAL_INV', invalidateRkey: rkey });
    nic.done();
    nic.request('RDMA_WRITE_ONLY', 1, { va, rkey }, pattern(50));
    expect(nic.take()).toMatchObject([nak(0x62, 1)]);
  });

  it('outside the region fail with MW_BIND_ERR and stop the QP', async () => {
    const nic = await LoneNic.create();
    const mw = await nic.pd.allocMw(1);
    nic.qp.postSend({
      opcode: 'BIND_MW',
      wrId: 1,
      mw,
      rkey: mw.nextRkey(),
      mr: nic.mr,
      offset: 65530,
      length: 7,
      access: 0,
    });
    expect(nic.done()).toMatchObject([{ wrId: 1, status: 6, statusName: 'MW_BIND_ERR' }]);
    expect(await nic.state()).toBe('ERR');
  });

  it('of another QP are refused by this one', async () => {
    const nic = await LoneNic.create();
    const other = await nic.pd.createQp({ sendCq: nic.cq });
    await connectToPeer(other);
    const mw = await nic.pd.allocMw(2);
    other.postSend({ opcode: 'BIND_MW', mw, rkey: mw.nextRkey(), mr: nic.mr, offset: 0, length: 64, access: 2 });
    expect(nic.done()).toMatchObject([{ status: 0 }]);
    nic.request('RDMA_WRITE_ONLY', 0, { destQpn: other.qpn, rkey: mw.rkey, ackReq: true }, pattern(8));
    expect(nic.take()).toMatchObject([{ syndrome: 0x1f }]);
    nic.request('RDMA_WRITE_ONLY', 0, { rkey: mw.rkey }, pattern(8));
    expect(nic.take()).toMatchObject([nak(0x62, 0)]);
  });
});
