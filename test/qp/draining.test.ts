/** SQD (IBTA vol. 1 §10.3.1.5): what was begun is finished, then attributes of the connection may change; the owner is told if he asks. */

import { describe, expect, it } from 'vitest';
import type { QpAttr } from '../../src/verbs/qp-attributes.js';
import { LoneNic, MTU, PEER_ADDRESS } from '../support/lone-nic.js';

const send = (nic: LoneNic, wrId = 0, packets = 1) =>
  ({ opcode: 'SEND', wrId, sges: [nic.mr.sge(0, packets * MTU)] }) as const;
const interrupt = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Those that concern work on the wire. */
const LATE: ReadonlyArray<QpAttr> = [
  { av: { address: PEER_ADDRESS, dscp: 26 } },
  { port: 1 },
  { pkeyIndex: 0 },
  { timeout: 10 },
  { retryCnt: 2 },
  { rnrRetry: 2 },
  { maxRdAtomic: 2 },
  { maxDestRdAtomic: 2 },
];
/** Those that a queue pair in RTS takes, too. */
const ANY_TIME: ReadonlyArray<QpAttr> = [{ accessFlags: 0 }, { minRnrTimer: 3 }, { rateControl: { name: 'none' } }];

describe('SQ_DRAINED', () => {
  it.each(['RC', 'UC'] as const)('of %s is raised once where it is asked for, and not else', async (type) => {
    const nic = await LoneNic.create({ qp: { type } });
    for (const asked of [undefined, false, true]) {
      await nic.qp.modify({ state: 'SQD', ...(asked !== undefined && { enSqdAsyncNotify: asked }) });
      await nic.qp.modify({ accessFlags: 0 });
      await interrupt();
      expect([asked, nic.asyncEvents]).toEqual([asked, asked === true ? ['SQ_DRAINED'] : []]);
      await nic.qp.modify({ state: 'RTS' });
    }
  });

  it('of UD as well', async () => {
    const nic = await LoneNic.create({ qp: { type: 'UD' }, state: 'RESET' });
    await nic.qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, qkey: 1 });
    await nic.qp.modify({ state: 'RTR' });
    await nic.qp.modify({ state: 'RTS', sqPsn: 0 });
    await nic.qp.modify({ state: 'SQD' });
    await interrupt();
    expect(nic.asyncEvents).toEqual([]);
    await nic.qp.modify({ state: 'RTS' });
    await nic.qp.modify({ state: 'SQD', enSqdAsyncNotify: true });
    await interrupt();
    expect(nic.asyncEvents).toEqual(['SQ_DRAINED']);
  });

  it('comes with the last acknowledgement, and not again with a stale one', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend(send(nic, 1, 2));
    nic.take();
    await nic.qp.modify({ state: 'SQD', enSqdAsyncNotify: true });
    nic.ack(0);
    await interrupt();
    expect(nic.asyncEvents).toEqual([]);
    nic.ack(1);
    nic.ack(1);
    await interrupt();
    expect(nic.asyncEvents).toEqual(['SQ_DRAINED']);
  });

  it('is not asked for any more after the queue pair went on', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend(send(nic));
    nic.take();
    await nic.qp.modify({ state: 'SQD', enSqdAsyncNotify: true });
    await nic.qp.modify({ state: 'RTS' });
    await nic.qp.modify({ state: 'SQD' });
    nic.ack(0);
    await interrupt();
    expect(nic.asyncEvents).toEqual([]);
  });
});

describe('while the send queue drains', () => {
  it.each(LATE.map((attr) => [Object.keys(attr)[0], attr] as const))(
    '%s waits, and is taken afterwards',
    async (_, attr) => {
      const nic = await LoneNic.create();
      nic.qp.postSend(send(nic));
      nic.take();
      await nic.qp.modify({ state: 'SQD' });
      expect(await nic.qp.query()).toMatchObject({ state: 'SQD', sqDraining: true });
      await expect(nic.qp.modify(attr)).rejects.toMatchObject({
        code: 'ERR_ROCE_INVALID_STATE',
        message: expect.stringContaining('still draining'),
      });
      nic.ack(0);
      expect(await nic.qp.query()).toMatchObject({ state: 'SQD', sqDraining: false });
      await nic.qp.modify(attr);
    },
  );

  it.each(ANY_TIME.map((attr) => [Object.keys(attr)[0], attr] as const))('%s is taken', async (_, attr) => {
    const nic = await LoneNic.create();
    nic.qp.postSend(send(nic));
    nic.take();
    await nic.qp.modify({ state: 'SQD' });
    await nic.qp.modify(attr);
    await nic.qp.modify({ state: 'RTS', ...attr });
  });

  it('a UC message in progress counts, one that has not begun does not', async () => {
    const nic = await LoneNic.create({
      qp: { type: 'UC' },
      attr: { rateControl: { name: 'fixed', rateBps: 1e6 } },
    });
    nic.qp.postSend(send(nic, 1, 2), send(nic, 2));
    nic.take();
    await nic.qp.modify({ state: 'SQD' });
    await expect(nic.qp.modify({ port: 1 })).rejects.toMatchObject({ code: 'ERR_ROCE_INVALID_STATE' });
    nic.advance(1e9);
    await nic.qp.modify({ port: 1 });
    expect((await nic.qp.query()).sqDraining).toBe(false);
  });
});
