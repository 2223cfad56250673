/** Completion queues: polling, waiting, solicited events, overflow. */

import { describe, expect, it } from 'vitest';
import { RoceError } from '../../src/core/errors.js';
import { checkCompletion, describeCompletion } from '../../src/verbs/completion-queue.js';
import type { SendWorkRequest } from '../../src/verbs/send-work-request.js';
import { connectToPeer, LoneNic, pattern } from '../support/lone-nic.js';

const send = (wrId: number, more: object = {}): SendWorkRequest => ({ opcode: 'SEND', wrId, ...more });
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
/** Whether the promise has settled once everything that can happen has happened. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let done = false;
  void promise.then(
    () => (done = true),
    () => (done = true),
  );
  await settle();
  return done;
}

describe('polling', () => {
  it('gives at most what is asked for, oldest first', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend(...[1, 2, 3, 4, 5].map((wrId) => send(wrId)));
    nic.take();
    nic.ack(4);
    expect(nic.cq.poll(2).map((wc) => wc.wrId)).toEqual([1, 2]);
    expect(nic.cq.pollOne()?.wrId).toBe(3);
    expect(nic.cq.poll().map((wc) => wc.wrId)).toEqual([4, 5]);
    expect(nic.cq.poll()).toEqual([]);
    expect(nic.cq.pollOne()).toBeUndefined();
  });

  it('carries wr_id through, bigint too', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend({ opcode: 'SEND', wrId: 0xffff_ffff_ffff_ffffn });
    nic.take();
    nic.ack(0);
    expect(nic.done()).toMatchObject([{ wrId: 0xffff_ffff_ffff_ffffn, qpn: nic.qp.qpn }]);
  });

  it('shows no completion for unsignaled work, unless the QP signals all', async () => {
    for (const signalAll of [false, true]) {
      const nic = await LoneNic.create({ qp: { signalAll } });
      nic.qp.postSend(send(1, { signaled: false }), send(2), send(3, { signaled: false }));
      nic.take();
      nic.ack(2);
      expect(nic.done().map((wc) => wc.wrId)).toEqual(signalAll ? [1, 2, 3] : [2]);
    }
  });

  it('leaves out completions of a QP that was closed', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend(send(1));
    nic.take();
    nic.ack(0);
    await nic.qp.close();
    expect(nic.cq.poll()).toEqual([]);
  });

  it('says in words what went wrong', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend(send(7));
    nic.take();
    nic.ack(0, 0x62);
    const [wc] = nic.done();
    expect(describeCompletion(wc)).toMatch(/^SEND wr_id 7 on QP 0x[0-9a-f]+: remote access error \(10\)$/);
    expect(() => checkCompletion(wc)).toThrow(expect.objectContaining({ code: 'ERR_ROCE_COMPLETION' }));
  });
});

describe('serving', () => {
  it('hands over every completion in order, one a microtask', async () => {
    const nic = await LoneNic.create();
    const heard: unknown[] = [];
    nic.qp.postSend(send(1), send(2));
    nic.take();
    nic.ack(1);
    nic.cq.serve({
      onCompletion: ({ wrId }) => {
        heard.push(wrId);
        void Promise.resolve().then(() => heard.push(`after ${wrId}`));
      },
      onFailure: (error) => heard.push(error),
    });
    expect(heard).toEqual([]); // Never from inside the call.
    await settle();
    expect(heard).toEqual([1, 'after 1', 2, 'after 2']);
    nic.qp.postSend(send(3)); // The queue is armed again.
    nic.take();
    nic.ack(2);
    await settle();
    expect(heard.slice(4)).toEqual([3, 'after 3']);
  });

  it('hands over failed work, too', async () => {
    const nic = await LoneNic.create();
    const heard: string[] = [];
    nic.cq.serve({ onCompletion: (wc) => heard.push(wc.statusName), onFailure: () => {} });
    nic.qp.postSend(send(7));
    nic.take();
    nic.ack(0, 0x62);
    await settle();
    expect(heard).toEqual(['REM_ACCESS_ERR']);
  });

  it('ends in silence when the queue is closed', async () => {
    const nic = await LoneNic.create();
    const failures: Error[] = [];
    nic.cq.serve({ onCompletion: () => {}, onFailure: (error) => failures.push(error) });
    await nic.qp.close();
    await nic.cq.close();
    await settle();
    expect(failures).toEqual([]);
  });

  it('says when nothing more will come, behind what has', async () => {
    const nic = await LoneNic.create();
    const heard: unknown[] = [];
    nic.qp.postSend(send(1));
    nic.take();
    nic.ack(0);
    nic.cq.onFailure(new RoceError('ERR_ROCE_LIMIT', 'the queue overran'));
    nic.cq.serve({ onCompletion: ({ wrId }) => heard.push(wrId), onFailure: ({ message }) => heard.push(message) });
    await settle();
    expect(heard).toEqual([1, 'the queue overran']);
  });

  it('ends with what the server throws', async () => {
    const nic = await LoneNic.create();
    const failures: string[] = [];
    let calls = 0;
    nic.cq.serve({
      onCompletion: () => {
        calls++;
        throw new Error('no');
      },
      onFailure: ({ message }) => failures.push(message),
    });
    nic.qp.postSend(send(1), send(2));
    nic.take();
    nic.ack(1);
    await settle();
    expect([calls, failures]).toEqual([1, ['no']]);
  });
});

describe('waiting', () => {
  it('resolves when a completion comes, and at once when one is there', async () => {
    const nic = await LoneNic.create();
    const waiting = nic.cq.wait();
    expect(await isSettled(waiting)).toBe(false);
    nic.qp.postSend(send(1));
    nic.take();
    nic.ack(0);
    await waiting;
    await nic.cq.wait();
    expect(nic.done()).toHaveLength(1);
  });

  it('wakes everyone who waits', async () => {
    const nic = await LoneNic.create();
    const waiting = Promise.all([nic.cq.wait(), nic.cq.wait(), nic.cq.wait()]);
    nic.qp.postSend(send(1));
    nic.take();
    nic.ack(0);
    await waiting;
  });

  it('for the next completion gives it', async () => {
    const nic = await LoneNic.create();
    const next = nic.cq.next();
    nic.qp.postSend(send(5));
    nic.take();
    nic.ack(0);
    expect(await next).toMatchObject({ wrId: 5 });
  });

  it('rejects when the queue is closed meanwhile', async () => {
    const nic = await LoneNic.create();
    const waiting = nic.cq.wait();
    const rejected = expect(waiting).rejects.toMatchObject({ code: 'ERR_ROCE_CLOSED' });
    await nic.qp.close();
    await nic.cq.close();
    await rejected;
    await expect(nic.cq.wait()).rejects.toMatchObject({ code: 'ERR_ROCE_CLOSED' });
  });

  it('iterates over completions until the queue is closed', async () => {
    const nic = await LoneNic.create();
    const seen: unknown[] = [];
    const reading = (async () => {
      for await (const wc of nic.cq) seen.push(wc.wrId);
    })();
    for (let n = 0; n < 3; n++) {
      nic.qp.postSend(send(n));
      nic.take();
      nic.ack(n);
      await settle();
    }
    expect(seen).toEqual([0, 1, 2]);
    await nic.device.close();
    await reading;
  });
});

describe('waiting for solicited completions', () => {
  const receive = (nic: LoneNic, at: number, solicited: boolean) => {
    nic.qp.postRecv({ sges: [nic.mr.sge()] });
    nic.request('SEND_ONLY', at, { solicited }, pattern(8));
  };

  it('sleeps through others', async () => {
    const nic = await LoneNic.create();
    const waiting = nic.recvCq.wait({ solicitedOnly: true });
    receive(nic, 0, false);
    expect(await isSettled(waiting)).toBe(false);
    receive(nic, 1, true);
    expect(await isSettled(waiting)).toBe(true);
    expect(nic.received()).toHaveLength(2);
  });

  it('does not make others sleep who wait for any', async () => {
    const nic = await LoneNic.create();
    const any = nic.recvCq.wait();
    const solicited = nic.recvCq.wait({ solicitedOnly: true });
    receive(nic, 0, false);
    expect(await isSettled(any)).toBe(true);
    expect(await isSettled(solicited)).toBe(false);
    receive(nic, 1, true);
    expect(await isSettled(solicited)).toBe(true);
  });

  it('wakes for an error', async () => {
    const nic = await LoneNic.create();
    nic.qp.postRecv();
    const waiting = nic.recvCq.wait({ solicitedOnly: true });
    await nic.qp.modify({ state: 'ERR' });
    expect(await isSettled(waiting)).toBe(true);
  });

  it('finds one that is there already', async () => {
    const nic = await LoneNic.create();
    receive(nic, 0, false);
    receive(nic, 1, true);
    expect(await isSettled(nic.recvCq.wait({ solicitedOnly: true }))).toBe(true);
  });
});

describe('an overflow', () => {
  /** Two QPs on one small completion queue, and how many completions fit. */
  async function withSmallCq(which: 'sendCq' | 'recvCq') {
    const nic = await LoneNic.create();
    const cq = await nic.device.createCq(4);
    const qp = await nic.pd.createQp({ sendCq: nic.cq, recvCq: nic.recvCq, [which]: cq });
    const idle = await nic.pd.createQp({ sendCq: nic.cq, recvCq: nic.recvCq, [which]: cq });
    await connectToPeer(idle);
    await connectToPeer(qp);
    return { nic, cq, qp, idle };
  }

  it('breaks the queue and stops every QP that uses it, not the others; the NIC goes on', async () => {
    const { nic, cq, qp, idle } = await withSmallCq('sendCq');
    qp.postSend(...[0, 1, 2, 3, 4, 5].map((wrId) => send(wrId)));
    nic.take();
    nic.response('ACKNOWLEDGE', 5, { destQpn: qp.qpn });
    expect(nic.take()).toEqual([]);
    await settle();
    expect(nic.asyncEvents).toEqual(expect.arrayContaining(['CQ_ERR']));
    expect(nic.asyncEvents.filter((name) => name === 'CQ_ERR')).toHaveLength(1);
    expect((await qp.query()).state).toBe('ERR');
    expect((await idle.query()).state).toBe('ERR');
    expect(await nic.state()).toBe('RTS');
    expect(cq.poll().map((wc) => wc.wrId)).toEqual([0, 1, 2, 3]);
    // Posting to the stopped QP does not hang or crash, and the good one still works.
    qp.postSend(send(9));
    expect(cq.poll()).toEqual([]);
    nic.qp.postSend(send(20));
    expect(nic.take()).toHaveLength(1);
    nic.ack(0);
    expect(nic.done().map((wc) => wc.wrId)).toEqual([20]);
  });

  it.each(['next', 'wait', 'iteration'] as const)(
    'ends %s with the reason once what came before is taken, begun before it or after',
    async (way) => {
      const { nic, cq, qp } = await withSmallCq('sendCq');
      const taken: unknown[] = [];
      const take = async () => {
        if (way === 'iteration') for await (const wc of cq) taken.push(wc.wrId);
        else if (way === 'next') for (;;) taken.push((await cq.next()).wrId);
        else
          for (;;) {
            await cq.wait();
            taken.push(...cq.poll().map((wc) => wc.wrId));
          }
      };
      const begunBefore = take();
      qp.postSend(...[0, 1, 2, 3, 4, 5].map((wrId) => send(wrId)));
      nic.take();
      nic.response('ACKNOWLEDGE', 5, { destQpn: qp.qpn });
      const overrun = { code: 'ERR_ROCE_LIMIT', message: expect.stringContaining('overran its 4 elements') };
      await expect(begunBefore).rejects.toMatchObject(overrun);
      expect(taken).toEqual([0, 1, 2, 3]);
      await expect(take()).rejects.toMatchObject(overrun);
    },
  );

  it('while flushing is survived', async () => {
    const { nic, cq, qp } = await withSmallCq('sendCq');
    qp.postSend(...[0, 1, 2, 3, 4, 5, 6].map((wrId) => send(wrId)));
    nic.take();
    nic.response('ACKNOWLEDGE', 2, { destQpn: qp.qpn, syndrome: 0x61 });
    expect(cq.poll().map((wc) => wc.status)).toEqual([0, 0, 9, 5]);
    expect((await qp.query()).state).toBe('ERR');
  });

  it('by receives stops the QP in the middle of a burst', async () => {
    const { nic, cq, qp } = await withSmallCq('recvCq');
    for (let wrId = 0; wrId < 8; wrId++) qp.postRecv({ wrId });
    for (let n = 0; n < 6; n++) nic.request('SEND_ONLY', n, { destQpn: qp.qpn, ackReq: true });
    nic.take();
    expect(cq.poll().map((wc) => wc.wrId)).toEqual([0, 1, 2, 3]);
    expect((await qp.query()).state).toBe('ERR');
    expect(await nic.state()).toBe('RTS');
  });

  it('of exactly the depth is none', async () => {
    const { nic, cq, qp } = await withSmallCq('sendCq');
    for (let round = 0; round < 5; round++) {
      qp.postSend(...[0, 1, 2, 3].map((n) => send(4 * round + n)));
      nic.take();
      nic.response('ACKNOWLEDGE', 4 * round + 3, { destQpn: qp.qpn });
      expect(cq.poll()).toHaveLength(4);
    }
    expect((await qp.query()).state).toBe('RTS');
  });
});
