/** The state ERR: first cause kept, everything else flushed, every work request completed exactly once; and RESET, which forgets. */

import { describe, expect, it } from 'vitest';
import type { WorkCompletion } from '../../src/verbs/completion-queue.js';
import type { SendWorkRequest } from '../../src/verbs/send-work-request.js';
import { ack, connectToPeer, LoneNic, MTU, nak, pattern } from '../support/lone-nic.js';

const send = (wrId: number, more: object = {}): SendWorkRequest => ({ opcode: 'SEND', wrId, ...more });
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
const summary = (wcs: readonly WorkCompletion[]) => wcs.map((wc) => [wc.wrId, wc.status]);

describe('an error', () => {
  const COUNT = 9;
  const CAUSES: Array<[string, number, (nic: LoneNic, index: number) => void]> = [
    ['a NAK', 10, (nic, index) => nic.ack(index, 0x62)],
    [
      'a bad answer',
      7,
      (nic, index) => {
        nic.ack(index - 1);
        nic.response('RDMA_READ_RESPONSE_ONLY', index, {}, pattern(8));
      },
    ],
    ['an RNR NAK too many', 13, (nic, index) => nic.ack(index, 0x21)],
    ['a sequence NAK too many', 12, (nic, index) => nic.ack(index, 0x60)],
  ];

  it.each(CAUSES)(
    'bug 24: by %s at any index gives every request one completion, in order',
    async (_, status, cause) => {
      // Flushing only what is not yet started, or from the wrong index, loses or repeats completions.
      for (let index = 0; index < COUNT; index++) {
        const nic = await LoneNic.create({ attr: { rnrRetry: 0, retryCnt: 0 } });
        for (let n = 0; n < COUNT; n++) nic.qp.postSend(send(n));
        for (let n = 0; n < 5; n++) nic.qp.postRecv({ wrId: 100 + n });
        nic.take();
        cause(nic, index);
        const wcs = nic.done();
        expect(wcs.map((wc) => wc.wrId)).toEqual([...Array(COUNT).keys()]);
        expect(wcs.map((wc) => wc.status)).toEqual(
          [...Array(COUNT).keys()].map((n) => (n < index ? 0 : n === index ? status : 5)),
        );
        expect(summary(nic.received())).toEqual([100, 101, 102, 103, 104].map((wrId) => [wrId, 5]));
        expect(nic.take()).toEqual([]);
        expect(await nic.state()).toBe('ERR');
      }
    },
  );

  it('owes the peer a NAK, which leaves although the owner moves the queue pair to ERR at once', async () => {
    const nic = await LoneNic.create();
    nic.request('RDMA_WRITE_MIDDLE', 0, {}, pattern(MTU));
    // Nothing has been sent yet.
    await nic.qp.modify({ state: 'ERR' });
    expect(nic.take()).toMatchObject([nak(0x61, 0)]);
  });

  it('of a queue pair that its owner ends owes nothing', async () => {
    const nic = await LoneNic.create();
    nic.request('RDMA_WRITE_ONLY', 0, { ackReq: true }, pattern(8));
    await nic.qp.modify({ state: 'ERR' });
    expect(nic.take()).toEqual([]);
  });

  it('bug 24: by a bad buffer at any index does too', async () => {
    for (let index = 0; index < COUNT; index++) {
      const nic = await LoneNic.create();
      for (let n = 0; n < COUNT; n++) {
        const sge = { addr: nic.mr.addr, length: 8, lkey: n === index ? 0 : nic.mr.lkey };
        nic.qp.postSend(send(n, { sges: [sge] }));
      }
      expect(nic.take()).toHaveLength(index);
      if (index > 0) nic.ack(index - 1);
      expect(summary(nic.done())).toEqual(
        [...Array(COUNT).keys()].map((n) => [n, n < index ? 0 : n === index ? 4 : 5]),
      );
    }
  });

  it('completes unsignaled requests as well', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend(send(1, { signaled: false }), send(2, { signaled: false }), send(3, { signaled: false }));
    nic.take();
    nic.ack(1, 0x61);
    expect(summary(nic.done())).toEqual([
      [2, 9],
      [3, 5],
    ]);
  });

  it('flushes what is posted afterwards, at once', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend(send(1));
    nic.take();
    nic.ack(0, 0x61);
    nic.done();
    await settle();
    nic.qp.postSend(send(2), send(3));
    nic.qp.postRecv({ wrId: 4 });
    expect(summary(nic.done())).toEqual([
      [2, 5],
      [3, 5],
    ]);
    expect(summary(nic.received())).toEqual([[4, 5]]);
  });

  it('flushes what is posted before the application hears of it', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend(send(1));
    nic.take();
    nic.ack(0, 0x61);
    expect(nic.qp.state).toBe('RTS'); // The event has not been delivered yet.
    nic.qp.postRecv({ wrId: 4 });
    await settle();
    expect(summary(nic.received())).toEqual([[4, 5]]);
  });

  it('at the responder stops the requester of the same QP', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend(send(1));
    nic.take();
    nic.request('SEND_LAST', 0, {}, pattern(8));
    expect(nic.take()).toMatchObject([nak(0x61, 0)]);
    expect(summary(nic.done())).toEqual([[1, 5]]);
    nic.ack(0);
    expect(nic.done()).toEqual([]);
  });

  it('at the requester silences the responder', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend(send(1));
    nic.take();
    nic.request('RDMA_READ_REQUEST', 0, { dmaLength: 4 * MTU });
    nic.ack(0, 0x61);
    expect(nic.take()).toEqual([]);
  });

  it('is told once', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend(send(1));
    nic.take();
    nic.ack(0, 0x61);
    nic.request('SEND_LAST', 0, {}, pattern(8));
    await nic.qp.modify({ state: 'ERR' });
    await settle();
    expect(nic.asyncEvents).toEqual(['QP_FATAL']);
  });
});

describe('modify to ERR', () => {
  it('flushes both queues and is no fatal event', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend(send(1), send(2));
    nic.qp.postRecv({ wrId: 3 });
    nic.take();
    await nic.qp.modify({ state: 'ERR' });
    expect(summary(nic.done())).toEqual([
      [1, 5],
      [2, 5],
    ]);
    expect(summary(nic.received())).toEqual([[3, 5]]);
    await settle();
    expect(nic.asyncEvents).toEqual([]);
  });

  it('flushes what is posted while the command is on its way', async () => {
    const nic = await LoneNic.create();
    const modified = nic.qp.modify({ state: 'ERR' });
    nic.qp.postRecv({ wrId: 3 });
    await modified;
    expect(summary(nic.received())).toEqual([[3, 5]]);
  });

  it('works from INIT and RTR', async () => {
    for (const state of ['INIT', 'RTR'] as const) {
      const nic = await LoneNic.create({ state });
      nic.qp.postRecv({ wrId: 3 });
      await nic.qp.modify({ state: 'ERR' });
      expect(summary(nic.received())).toEqual([[3, 5]]);
    }
  });

  it('gives back a receive that a message in progress has taken', async () => {
    const nic = await LoneNic.create();
    nic.qp.postRecv({ wrId: 3, sges: [nic.mr.sge()] });
    nic.request('SEND_FIRST', 0, {}, pattern(MTU));
    await nic.qp.modify({ state: 'ERR' });
    expect(summary(nic.received())).toEqual([[3, 5]]);
  });

  it.each(['ERR', 'RTS'] as const)('%s to RESET and up again starts a new life', async (from) => {
    const nic = await LoneNic.create();
    nic.qp.postSend(send(1));
    nic.request('RDMA_WRITE_FIRST', 0, { dmaLength: 2 * MTU }, pattern(MTU));
    nic.request('RDMA_WRITE_ONLY', 2, {}, pattern(8));
    nic.take();
    if (from === 'ERR') await nic.qp.modify({ state: 'ERR' });
    nic.done();
    nic.qp.postRecv({ wrId: 2 });
    await nic.qp.modify({ state: 'RESET' });
    await connectToPeer(nic.qp);
    expect(nic.done()).toEqual([]);
    // PSNs, MSN, message context and NAK state are those of a new QP.
    nic.request('RDMA_WRITE_ONLY', 0, { ackReq: true }, pattern(8));
    expect(nic.take()).toMatchObject([ack(0, 1)]);
    nic.request('RDMA_WRITE_ONLY', 2, {}, pattern(8));
    expect(nic.take()).toMatchObject([nak(0x60, 1)]);
    nic.qp.postSend(send(9));
    expect(nic.take()).toMatchObject([{ name: 'SEND_ONLY', at: 0 }]);
    nic.ack(0);
    expect(summary(nic.done())).toEqual([[9, 0]]);
  });
});

describe('modify to RESET', () => {
  it('forgets what is posted, without completions', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend(send(1));
    nic.qp.postRecv({ wrId: 2 });
    nic.take();
    await nic.qp.modify({ state: 'RESET' });
    expect(nic.done()).toEqual([]);
    expect(nic.received()).toEqual([]);
    expect(nic.advance(1e12)).toEqual([]);
  });

  it('takes completions that were not polled with it, and leaves the queues whole', async () => {
    const nic = await LoneNic.create({ qp: { maxRecvWr: 4 } });
    nic.qp.postRecv({ wrId: 1 });
    nic.request('SEND_ONLY', 0, {}, new Uint8Array(0)); // Completed, but not polled.
    await nic.qp.modify({ state: 'RESET' });
    expect(nic.received()).toEqual([]);
    await connectToPeer(nic.qp);
    for (const wrId of [10, 11, 12, 13]) nic.qp.postRecv({ wrId });
    expect(() => nic.qp.postRecv({ wrId: 14 })).toThrow(expect.objectContaining({ code: 'ERR_ROCE_QUEUE_FULL' }));
    for (let n = 0; n < 4; n++) nic.request('SEND_ONLY', n, {}, new Uint8Array(0));
    expect(nic.received().map((wc) => wc.wrId)).toEqual([10, 11, 12, 13]);
  });
});
