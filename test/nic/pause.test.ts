/** Priority-based flow control at the NIC: a paused priority sends nothing, the others go on. */

import { describe, expect, it } from 'vitest';
import { prioritiesOfDscps } from '../../src/packet/dscp-priority.js';
import { ECN_CE } from '../../src/port/datagram.js';
import type { QpAttr } from '../../src/verbs/qp-attributes.js';
import type { QueuePair } from '../../src/verbs/queue-pair.js';
import { connectToPeer, LoneNic, MTU, PEER_ADDRESS, PEER_QPN, pattern, type SentPacket } from '../support/lone-nic.js';

const US = 1000;
/** DSCP 26 is priority 3, the usual one of lossless traffic. */
const LOSSLESS: QpAttr = { av: { address: PEER_ADDRESS, dscp: 26 } };
const names = (packets: SentPacket[]) => packets.map((packet) => packet.name);

function pause(nic: LoneNic, priority: number, us: number): void {
  nic.host.pause(priority, us * US);
}

function send(nic: LoneNic, qp: QueuePair = nic.qp): void {
  qp.postSend({ opcode: 'SEND', sges: [nic.mr.sge(0, 8)] });
}

describe('a paused priority', () => {
  it('sends nothing until the pause is over', async () => {
    const nic = await LoneNic.create({ attr: LOSSLESS });
    pause(nic, 3, 10);
    send(nic);
    expect(nic.advance(10 * US - 1)).toEqual([]);
    expect(nic.advance(1)).toMatchObject([{ name: 'SEND_ONLY', timeNs: 10 * US, dscp: 26 }]);
  });

  it('is the one to which the NIC maps the DSCP of the packets', async () => {
    const priorities = prioritiesOfDscps({ 26: 5 });
    const nic = await LoneNic.create({ attr: LOSSLESS, tuning: { priorityOfDscp: (dscp) => priorities[dscp] } });
    pause(nic, 3, 10);
    send(nic);
    expect(names(nic.take())).toEqual(['SEND_ONLY']);
    pause(nic, 5, 10);
    send(nic);
    expect(nic.advance(US)).toEqual([]);
  });

  it('goes on at once when the pause is lifted', async () => {
    const nic = await LoneNic.create({ attr: LOSSLESS });
    pause(nic, 3, 1000);
    send(nic);
    expect(nic.advance(5 * US)).toEqual([]);
    pause(nic, 3, 0);
    expect(names(nic.take())).toEqual(['SEND_ONLY']);
  });

  it('stays paused as long as the newest frame says, be it longer or shorter', async () => {
    const nic = await LoneNic.create({ attr: LOSSLESS });
    pause(nic, 3, 10);
    send(nic);
    nic.advance(5 * US);
    pause(nic, 3, 10);
    expect(nic.advance(10 * US - 1)).toEqual([]);
    pause(nic, 3, 100);
    pause(nic, 3, 2);
    expect(names(nic.advance(2 * US))).toEqual(['SEND_ONLY']);
  });

  it('is one of eight: the others send', async () => {
    const nic = await LoneNic.create({ attr: LOSSLESS });
    const other = await nic.pd.createQp({ sendCq: nic.cq });
    await connectToPeer(other, 'RTS', { av: { address: PEER_ADDRESS, dscp: 34 } });
    pause(nic, 3, 10);
    send(nic);
    send(nic, other);
    expect(nic.take()).toMatchObject([{ dscp: 34 }]);
    expect(nic.advance(10 * US)).toMatchObject([{ dscp: 26 }]);
  });

  it('also keeps READ responses and acknowledgements of its queue pairs', async () => {
    const nic = await LoneNic.create({ attr: LOSSLESS });
    pause(nic, 3, 10);
    nic.request('RDMA_WRITE_ONLY', 0, { ackReq: true }, pattern(8));
    nic.request('RDMA_READ_REQUEST', 1, { dmaLength: 2 * MTU });
    expect(nic.advance(10 * US - 1)).toEqual([]);
    expect(names(nic.advance(1))).toEqual(['RDMA_READ_RESPONSE_FIRST', 'RDMA_READ_RESPONSE_LAST', 'ACKNOWLEDGE']);
  });

  it('does not keep congestion notifications: they have priority 6', async () => {
    const nic = await LoneNic.create({ attr: LOSSLESS });
    const mark = (at: number) => nic.deliver(nic.craftRequest('RDMA_WRITE_ONLY', at, {}, pattern(8)), { ecn: ECN_CE });
    pause(nic, 3, 10);
    mark(0);
    expect(names(nic.take())).toEqual(['CNP']);
    nic.advance(100 * US);
    pause(nic, 6, 10);
    mark(1);
    expect(names(nic.advance(10 * US - 1))).toEqual([]);
    expect(names(nic.advance(1))).toEqual(['CNP']);
  });

  it('comes from the DSCP by a table of the driver’s own, if it has one', async () => {
    const nic = await LoneNic.create({ attr: LOSSLESS, tuning: { priorityOfDscp: (dscp) => (dscp === 26 ? 5 : 0) } });
    pause(nic, 3, 10);
    send(nic);
    expect(names(nic.take())).toEqual(['SEND_ONLY']);
    pause(nic, 5, 10);
    send(nic);
    expect(nic.take()).toEqual([]);
  });

  it('holds UD queue pairs by the address handle of their next message', async () => {
    const nic = await LoneNic.create();
    const qp = await nic.pd.createQp({ type: 'UD', sendCq: nic.cq });
    await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, qkey: 1 });
    await qp.modify({ state: 'RTR' });
    await qp.modify({ state: 'RTS', sqPsn: 0 });
    const ah = await nic.pd.createAh(PEER_ADDRESS, { dscp: 26 });
    pause(nic, 3, 10);
    qp.postSend({ opcode: 'SEND', sges: [nic.mr.sge(0, 8)], ah, remoteQpn: PEER_QPN, remoteQkey: 1 });
    expect(nic.advance(10 * US - 1)).toEqual([]);
    expect(names(nic.advance(1))).toEqual(['SEND_ONLY']);
  });

  it('is counted by priority', async () => {
    const nic = await LoneNic.create();
    pause(nic, 3, 10);
    pause(nic, 3, 0);
    pause(nic, 7, 1);
    expect(nic.device.counters()).toMatchObject({ rx_prio3_pause: 2, rx_prio7_pause: 1, rx_prio0_pause: 0 });
  });

  it('costs a QP that is destroyed meanwhile nothing', async () => {
    const nic = await LoneNic.create({ attr: LOSSLESS });
    pause(nic, 3, 10);
    send(nic);
    nic.take();
    await nic.qp.close();
    expect(nic.advance(20 * US)).toEqual([]);
  });
});
