/**
 * A program keeps queue pairs in a pool: RESET, and on to the next peer. Nothing of the former connection may reach that one (IBTA vol. 1
 * §10.3.1.1: in RESET every attribute has its initial value).
 */

import { describe, expect, it } from 'vitest';
import type { QpAttr } from '../../src/verbs/qp-attributes.js';
import { connectToPeer, LoneNic, nak, PEER_ADDRESS, pattern } from '../support/lone-nic.js';

/** Everything about the first peer that a program can set. */
const FORMER: QpAttr = {
  recovery: 'selective-repeat',
  rateControl: { name: 'dcqcn', linkRateBps: 10e9 },
  inflightPackets: 4,
  timeout: 20,
  maxDestRdAtomic: 1,
};

/** What `query` says of a queue pair that has just been made. */
async function initialInfo(nic: LoneNic) {
  const fresh = await nic.pd.createQp({ sendCq: nic.cq, type: nic.qp.type });
  const info = await fresh.query();
  await fresh.close();
  return info;
}

describe('after RESET', () => {
  it.each(['RC', 'UC'] as const)('every attribute of %s is as in a new queue pair', async (type) => {
    const { recovery, inflightPackets, ...common } = FORMER;
    const attr = {
      ...common,
      ...(type === 'RC' && { recovery, inflightPackets }),
      av: { address: PEER_ADDRESS, dscp: 26, ecn: 2 },
    };
    const nic = await LoneNic.create({ attr, qp: { type } });
    nic.qp.postSend({ opcode: 'SEND' });
    nic.request('SEND_ONLY', 0);
    nic.take();
    nic.congestionNotification();
    await nic.qp.modify({ state: 'RESET' });
    expect(await nic.qp.query()).toEqual(await initialInfo(nic));
  });

  it('a third party gets answers that it understands: NAKs, and no SACK of ours', async () => {
    const nic = await LoneNic.create({ attr: FORMER });
    nic.request('SEND_ONLY', 2, {}, pattern(8));
    expect(nic.take()).toMatchObject([{ name: 'SACK' }]); // The twin: with the peer that agreed to it.
    await nic.qp.modify({ state: 'RESET' });
    await connectToPeer(nic.qp);
    nic.qp.postRecv({ wrId: 1, sges: [nic.mr.sge()] });
    nic.request('SEND_ONLY', 2, {}, pattern(8));
    expect(nic.take()).toMatchObject([nak(0x60, 0)]);
    nic.request('SEND_ONLY', 0, { ackReq: true }, pattern(8));
    expect(nic.take()).toMatchObject([{ name: 'ACKNOWLEDGE', at: 0, syndrome: 0x1f, msn: 1 }]);
    expect(nic.received()).toMatchObject([{ wrId: 1, status: 0 }]);
  });

  it('packets leave unpaced and without ECT', async () => {
    const nic = await LoneNic.create({ attr: FORMER });
    await nic.qp.modify({ state: 'RESET' });
    await connectToPeer(nic.qp);
    nic.qp.postSend({ opcode: 'SEND', sges: [nic.mr.sge(0, 8 * 256)] });
    const sent = nic.take();
    expect(sent).toHaveLength(8);
    expect(new Set(sent.map((p) => `${p.ecn} ${p.timeNs}`))).toEqual(new Set([`0 ${nic.nowNs}`]));
  });
});
