/** Rules of UD queue pairs: controlled Q_Keys (IBTA vol. 1 §10.2.5) and what a send error leaves working (§10.3.1.6). */

import { describe, expect, it } from 'vitest';
import type { QueuePair } from '../../src/verbs/queue-pair.js';
import { connectQp, createPair, type Player } from '../support/pair.js';

const GRH = 40;
const OWN_QKEY = 0x1111;
const CONTROLLED = 0x8000_0000;

async function udQp({ pd, cq, recvCq }: Player, qkey: number): Promise<QueuePair> {
  const qp = await pd.createQp({ type: 'UD', sendCq: cq, recvCq });
  await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, qkey });
  await qp.modify({ state: 'RTR' });
  await qp.modify({ state: 'RTS', sqPsn: 0 });
  return qp;
}

async function setUp(theirQkey: number) {
  const pair = await createPair();
  const from = await udQp(pair.a, OWN_QKEY);
  const to = await udQp(pair.b, theirQkey);
  const ah = await pair.a.pd.createAh(pair.b.host.address);
  const send = (remoteQkey: number, text = 'x') =>
    from.postSend({ opcode: 'SEND', ah, remoteQpn: to.qpn, remoteQkey, inline: Buffer.from(text) });
  return { pair, from, to, ah, send };
}

describe('a Q_Key with bit 31', () => {
  it.each([CONTROLLED, 0xffff_ffff, 0x8001_0000])('%i in the work request: the own Q_Key is sent', async (qkey) => {
    const { pair, to, send } = await setUp(OWN_QKEY);
    to.postRecv({ wrId: 1, sges: [pair.b.mr.sge(0, GRH + 8)] });
    send(qkey);
    expect(pair.completions(pair.b.recvCq, 1)).toMatchObject([{ wrId: 1, status: 0 }]);
  });

  it('does not reach a queue pair that has such a Q_Key: only one that has it itself may', async () => {
    const { pair, to, send } = await setUp(0x8001_0000);
    to.postRecv({ sges: [pair.b.mr.sge(0, GRH + 8)] });
    send(0x8001_0000);
    pair.run();
    expect(pair.b.device.counters()).toMatchObject({ rx_drop_qkey: 1, rx_send_messages: 0 });
    const privileged = await udQp(pair.a, 0x8001_0000);
    const ah = await pair.a.pd.createAh(pair.b.host.address);
    privileged.postSend({ opcode: 'SEND', ah, remoteQpn: to.qpn, remoteQkey: 0x8001_0000 });
    expect(pair.completions(pair.b.recvCq, 1)).toMatchObject([{ status: 0 }]);
  });

  it('without it the Q_Key of the work request is sent', async () => {
    const { pair, to, send } = await setUp(0x7fff_ffff);
    to.postRecv({ sges: [pair.b.mr.sge(0, GRH + 8)] });
    send(0x7fff_ffff);
    expect(pair.completions(pair.b.recvCq, 1)).toMatchObject([{ status: 0 }]);
  });
});

describe('a send that fails', () => {
  it('stops the send queue alone: SQE, receives go on, and RTS takes it back', async () => {
    const { pair, from, to, send } = await setUp(OWN_QKEY);
    const { a, b } = pair;
    const fatal: QueuePair[] = [];
    a.device.events.on('QP_FATAL', (qp) => fatal.push(qp));
    from.postRecv({ wrId: 9, sges: [a.mr.sge(0, GRH + 8)] });
    from.postSend({ opcode: 'SEND', wrId: 1, remoteQpn: to.qpn, remoteQkey: OWN_QKEY });
    from.postSend({ opcode: 'SEND', wrId: 2, remoteQpn: to.qpn, remoteQkey: OWN_QKEY });
    expect(pair.completions(a.cq, 2)).toMatchObject([
      { wrId: 1, statusName: 'LOC_QP_OP_ERR' },
      { wrId: 2, statusName: 'WR_FLUSH_ERR' },
    ]);
    expect((await from.query()).state).toBe('SQE');
    send(OWN_QKEY);
    expect(pair.completions(a.cq, 1)).toMatchObject([{ statusName: 'WR_FLUSH_ERR' }]);

    const back = await b.pd.createAh(a.host.address);
    to.postSend({ opcode: 'SEND', ah: back, remoteQpn: from.qpn, remoteQkey: OWN_QKEY });
    expect(pair.completions(a.recvCq, 1)).toMatchObject([{ wrId: 9, status: 0 }]);

    await from.modify({ state: 'RTS' });
    to.postRecv({ wrId: 7, sges: [b.mr.sge(0, GRH + 8)] });
    send(OWN_QKEY);
    expect(pair.completions(b.recvCq, 1)).toMatchObject([{ wrId: 7, status: 0 }]);
    expect(fatal).toEqual([]);
  });

  it('goes to ERR when its completion finds the queue full', async () => {
    const { pair, ah, to } = await setUp(OWN_QKEY);
    const cq = await pair.a.device.createCq(2);
    const qp = await pair.a.pd.createQp({ type: 'UD', sendCq: cq, recvCq: pair.a.recvCq });
    await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, qkey: OWN_QKEY });
    await qp.modify({ state: 'RTR' });
    await qp.modify({ state: 'RTS', sqPsn: 0 });
    for (let n = 0; n < 2; n++) qp.postSend({ opcode: 'SEND', ah, remoteQpn: to.qpn, remoteQkey: OWN_QKEY });
    pair.run();
    qp.postSend({ opcode: 'SEND', remoteQpn: to.qpn, remoteQkey: OWN_QKEY });
    pair.run();
    expect((await qp.query()).state).toBe('ERR');
  });

  it('on RC is fatal: there is no SQE', async () => {
    const { pair } = await setUp(OWN_QKEY);
    const qp = await pair.a.pd.createQp({ sendCq: pair.a.cq });
    const peer = { address: pair.b.host.address, qpn: pair.b.qp.qpn, psn: 0 };
    await connectQp(qp, peer, { psn: 0, mtu: 1024, recovery: 'go-back-n' });
    qp.postSend({ opcode: 'SEND', sges: [{ addr: 1n, length: 8, lkey: 1 }] });
    pair.run({ untilNs: 1e9 });
    expect((await qp.query()).state).toBe('ERR');
  });
});
