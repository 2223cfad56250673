/** Completion queues and shared receive queues that become deeper or shallower while they are in use. */

import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../src/core/random.js';
import { Dice } from '../support/dice.js';
import { connectToPeer, LoneNic } from '../support/lone-nic.js';

const coded = (code: string) => expect.objectContaining({ code });
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A NIC with a completion queue for receives, of this depth. */
async function withQueue(depth: number) {
  const nic = await LoneNic.create({ state: 'RESET' });
  const recvCq = await nic.device.createCq(depth);
  const qp = await nic.pd.createQp({ sendCq: nic.cq, recvCq, maxRecvWr: 64 });
  await connectToPeer(qp);
  let at = 0;
  const receive = (count: number) => {
    for (let n = 0; n < count; n++, at++) {
      qp.postRecv({ wrId: at });
      nic.request('SEND_ONLY', at, { destQpn: qp.qpn });
    }
  };
  return { nic, recvCq, qp, receive };
}

describe('a completion queue', () => {
  it('that grows keeps what was not taken, and holds more', async () => {
    const { recvCq, receive } = await withQueue(4);
    receive(4);
    await recvCq.resize(8);
    expect(recvCq.depth).toBe(8);
    receive(4);
    expect(recvCq.poll().map((wc) => wc.wrId)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  it('that does not grow overruns', async () => {
    const { nic, recvCq, receive } = await withQueue(4);
    receive(5);
    await settle();
    expect(nic.asyncEvents).toContain('CQ_ERR');
    expect(recvCq.poll()).toHaveLength(4);
  });

  it('that shrinks to what was not taken overruns with the next completion', async () => {
    const { nic, recvCq, receive } = await withQueue(16);
    receive(4);
    await recvCq.resize(4);
    receive(1);
    await settle();
    expect(nic.asyncEvents).toContain('CQ_ERR');
    expect(recvCq.poll().map((wc) => wc.wrId)).toEqual([0, 1, 2, 3]);
  });

  it('does not shrink below what was not taken, and works as before', async () => {
    const { recvCq, receive } = await withQueue(16);
    receive(5);
    await expect(recvCq.resize(4)).rejects.toEqual(coded('ERR_ROCE_LIMIT'));
    expect(recvCq.depth).toBe(16);
    receive(1);
    expect(recvCq.poll().map((wc) => wc.wrId)).toEqual([0, 1, 2, 3, 4, 5]);
    await recvCq.resize(4);
  });

  it('wakes those who wait, before and after', async () => {
    const { recvCq, receive } = await withQueue(4);
    const next = recvCq.next();
    await settle();
    const resized = recvCq.resize(32);
    receive(1);
    await resized;
    expect(await next).toMatchObject({ wrId: 0 });
    const later = recvCq.next();
    await settle();
    receive(1);
    expect(await later).toMatchObject({ wrId: 1 });
  });

  it('can be resized again at once, and closed meanwhile', async () => {
    const { recvCq, qp, receive } = await withQueue(4);
    receive(3);
    const resized = Promise.all([recvCq.resize(64), recvCq.resize(8), recvCq.resize(16)]);
    await qp.close();
    await Promise.all([resized, recvCq.close()]);
    await expect(recvCq.resize(8)).rejects.toEqual(coded('ERR_ROCE_NOT_FOUND'));
  });

  it('leaves out completions of a queue pair that is closed meanwhile', async () => {
    const { recvCq, qp, receive } = await withQueue(4);
    receive(3);
    await Promise.all([recvCq.resize(64), qp.close()]);
    expect(recvCq.poll()).toEqual([]);
  });
});

/** A NIC with a shared receive queue of this depth. */
async function withSrq(depth: number) {
  const nic = await LoneNic.create({ state: 'RESET' });
  const srq = await nic.pd.createSrq({ depth, maxSge: 2 });
  const qp = await nic.pd.createQp({ sendCq: nic.cq, recvCq: nic.recvCq, srq });
  await connectToPeer(qp);
  let at = 0;
  const receive = (count = 1) => {
    for (let n = 0; n < count; n++) nic.request('SEND_ONLY', at++, { destQpn: qp.qpn });
    return nic.received().map((wc) => wc.wrId);
  };
  const post = (...wrIds: number[]) => {
    for (const wrId of wrIds) srq.postRecv({ wrId, sges: [nic.mr.sge(0, 8), nic.mr.sge(8, 8)] });
  };
  return { srq, receive, post };
}

describe('a shared receive queue', () => {
  it('that grows keeps what was posted, in order, and holds more', async () => {
    const { srq, receive, post } = await withSrq(4);
    post(0, 1, 2, 3);
    expect(receive()).toEqual([0]);
    await srq.resize(8);
    expect([srq.depth, srq.maxSge]).toEqual([8, 2]);
    post(4, 5, 6, 7, 8);
    expect(() => post(9)).toThrow(coded('ERR_ROCE_QUEUE_FULL'));
    expect(receive(8)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  it('that shrinks holds less, and grows again', async () => {
    const { srq, receive, post } = await withSrq(8);
    post(0, 1, 2);
    await srq.resize(4);
    post(3);
    expect(() => post(4)).toThrow(coded('ERR_ROCE_QUEUE_FULL'));
    expect(receive(4)).toEqual([0, 1, 2, 3]);
    await srq.resize(8);
    post(0, 1, 2, 3, 4, 5, 6, 7);
    expect(() => post(8)).toThrow(coded('ERR_ROCE_QUEUE_FULL'));
    expect(receive(8)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  it('does not shrink below what is posted and not polled', async () => {
    const { srq, receive, post } = await withSrq(8);
    post(0, 1, 2, 3, 4);
    await expect(srq.resize(4)).rejects.toEqual(coded('ERR_ROCE_LIMIT'));
    expect(srq.depth).toBe(8);
    expect(receive(5)).toEqual([0, 1, 2, 3, 4]);
    await srq.resize(4);
  });

  it('takes receives while it is resized', async () => {
    const { srq, receive, post } = await withSrq(4);
    post(0, 1);
    const resized = srq.resize(8);
    post(2, 3);
    await resized;
    post(4);
    expect(receive(5)).toEqual([0, 1, 2, 3, 4]);
  });

  it('tells which limit is armed', async () => {
    const { srq, receive, post } = await withSrq(8);
    post(0, 1, 2, 3);
    expect(await srq.queryLimit()).toBe(0);
    await srq.setLimit(3);
    expect(await srq.queryLimit()).toBe(3);
    await srq.resize(16);
    expect(await srq.queryLimit()).toBe(3);
    receive(2);
    expect(await srq.queryLimit()).toBe(0);
  });

  it.each([1, 2, 3])('loses and doubles nothing under random changes, seed %i', async (seed) => {
    const dice = new Dice(new SeededRandom(seed).stream('depths'));
    const { srq, receive, post } = await withSrq(4);
    let posted = 0;
    let received = 0;
    for (let n = 0; n < 300; n++) {
      const room = srq.depth - (posted - received);
      const posts = dice.int(0, room);
      for (let k = 0; k < posts; k++) post(posted++);
      const depth = dice.pick([1, 2, 4, 8, 16, 32]);
      if (depth >= posted - received) await srq.resize(depth);
      for (let k = dice.int(0, posted - received); k > 0; k--) expect(receive()).toEqual([received++]);
    }
    expect(received).toBeGreaterThan(300);
  });
});
