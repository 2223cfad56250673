/** What holds a work request back: the window, max_rd_atomic, fences, local operations, draining. */

import { describe, expect, it } from 'vitest';
import { IpAddress } from '../../src/packet/address.js';
import { Access } from '../../src/verbs/access.js';
import type { SendWorkRequest } from '../../src/verbs/send-work-request.js';
import { connectToPeer, LoneNic, MTU, pattern } from '../support/lone-nic.js';

const REMOTE = { remoteAddr: 0x1000n, rkey: 1 };
const send = (wrId: number, more: object = {}): SendWorkRequest => ({ opcode: 'SEND', wrId, ...more });
const read = (nic: LoneNic, wrId: number, size = 8, more: object = {}): SendWorkRequest => ({
  opcode: 'RDMA_READ',
  wrId,
  sges: [nic.mr.sge(0, size)],
  ...REMOTE,
  ...more,
});
const atomic = (nic: LoneNic, wrId: number): SendWorkRequest => ({
  opcode: 'ATOMIC_FETCH_AND_ADD',
  wrId,
  add: 1n,
  sges: [nic.mr.sge(0, 8)],
  ...REMOTE,
});
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('the window', () => {
  it('lets so many packets be in flight and no more', async () => {
    const nic = await LoneNic.create({ attr: { inflightPackets: 4 } });
    nic.qp.postSend({ opcode: 'SEND', sges: [nic.mr.sge(0, 10 * MTU)] });
    const first = nic.take();
    expect(first.map((p) => p.at)).toEqual([0, 1, 2, 3]);
    expect(first[3].ackReq).toBe(true); // Otherwise nothing would move the window again.
    nic.ack(1);
    expect(nic.take().map((p) => p.at)).toEqual([4, 5]);
  });

  it('is shared with other queue pairs to the same peer, as long as they live', async () => {
    const nic = await LoneNic.create({ attr: { inflightPackets: 8 } });
    const other = await nic.pd.createQp({ sendCq: nic.cq });
    await connectToPeer(other, 'RTR', { inflightPackets: 8 });
    nic.qp.postSend({ opcode: 'SEND', sges: [nic.mr.sge(0, 40 * MTU)] });
    expect(nic.take()).toHaveLength(4);
    await other.close();
    nic.ack(3);
    expect(nic.take()).toHaveLength(8);
  });

  it('asks for a READ that does not fit in pieces, each with the PSNs the whole would have had', async () => {
    const nic = await LoneNic.create({ attr: { inflightPackets: 4 } });
    const data = pattern(10 * MTU);
    nic.qp.postSend(read(nic, 1, 10 * MTU));
    const asked: Array<[number, number, bigint]> = [];
    for (let at = 0; at < 10; at++) {
      asked.push(...nic.take().map((p): [number, number, bigint] => [p.at, p.dmaLength / MTU, p.va]));
      nic.response('RDMA_READ_RESPONSE_MIDDLE', at, {}, data.subarray(at * MTU, (at + 1) * MTU));
    }
    let next = 0;
    for (const [at, psns, va] of asked) {
      expect(at).toBe(next);
      expect(psns).toBeLessThanOrEqual(4);
      expect(va).toBe(REMOTE.remoteAddr + BigInt(at * MTU));
      next += psns;
    }
    expect(next).toBe(10);
    expect(nic.done()).toMatchObject([{ wrId: 1, status: 0 }]);
    expect(nic.mr.bytes.subarray(0, data.length)).toEqual(data);
  });
});

describe('max_rd_atomic', () => {
  it('READs and atomics together stay below it; a slot frees when its answer is complete', async () => {
    const nic = await LoneNic.create({ attr: { maxRdAtomic: 2 } });
    nic.qp.postSend(read(nic, 1, 2 * MTU), atomic(nic, 2), read(nic, 3), send(4));
    expect(nic.take().map((p) => p.at)).toEqual([0, 2]); // The blocked READ blocks the SEND behind it.
    nic.response('RDMA_READ_RESPONSE_FIRST', 0, {}, pattern(MTU));
    expect(nic.take()).toEqual([]);
    nic.response('RDMA_READ_RESPONSE_LAST', 1, {}, pattern(MTU));
    expect(nic.take().map((p) => p.name)).toEqual(['RDMA_READ_REQUEST', 'SEND_ONLY']);
  });

  it('SENDs and WRITEs are not counted', async () => {
    const nic = await LoneNic.create({ attr: { maxRdAtomic: 1 } });
    nic.qp.postSend(...Array.from({ length: 20 }, (_, wrId) => send(wrId)));
    expect(nic.take()).toHaveLength(20);
  });

  it('stays kept when a READ is asked for again', async () => {
    const nic = await LoneNic.create({ attr: { maxRdAtomic: 1 } });
    nic.qp.postSend(read(nic, 1), read(nic, 2));
    expect(nic.take()).toHaveLength(1);
    expect(nic.advance(80e6)).toMatchObject([{ at: 0 }]);
    nic.response('RDMA_READ_RESPONSE_ONLY', 0, {}, pattern(8));
    expect(nic.take()).toMatchObject([{ at: 1 }]);
  });

  it('can be raised while draining', async () => {
    const nic = await LoneNic.create({ attr: { maxRdAtomic: 1 } });
    await nic.qp.modify({ state: 'SQD' });
    await nic.qp.modify({ maxRdAtomic: 3 });
    await nic.qp.modify({ state: 'RTS' });
    nic.qp.postSend(...[1, 2, 3, 4].map((wrId) => read(nic, wrId)));
    expect(nic.take().map((p) => p.at)).toEqual([0, 1, 2]);
    nic.response('RDMA_READ_RESPONSE_ONLY', 0, {}, pattern(8));
    expect(nic.take().map((p) => p.at)).toEqual([3]);
    expect(nic.done().map((wc) => wc.wrId)).toEqual([1]);
  });
});

describe('attributes changed while draining', () => {
  it('max_dest_rd_atomic: more READs are accepted at once, and the old ones can still be repeated', async () => {
    const nic = await LoneNic.create({ attr: { maxDestRdAtomic: 1 } });
    nic.request('RDMA_READ_REQUEST', 0, { dmaLength: 8 });
    nic.take();
    await nic.qp.modify({ state: 'SQD' });
    await nic.qp.modify({ maxDestRdAtomic: 3 });
    nic.request('RDMA_READ_REQUEST', 0, { dmaLength: 8 });
    expect(nic.take().map((p) => p.at)).toEqual([0]);
    for (const n of [1, 2, 3]) nic.request('RDMA_READ_REQUEST', n, { dmaLength: 8 });
    expect(nic.take().map((p) => p.at)).toEqual([1, 2, 3]);
    expect(await nic.state()).toBe('SQD');
  });

  it('max_dest_rd_atomic: fewer keeps the newest', async () => {
    const nic = await LoneNic.create({ attr: { maxDestRdAtomic: 3 } });
    for (const n of [0, 1, 2]) nic.request('FETCH_ADD', n, { swapAdd: 1n });
    nic.take();
    await nic.qp.modify({ state: 'SQD' });
    await nic.qp.modify({ maxDestRdAtomic: 1 });
    for (const n of [0, 1, 2]) nic.request('FETCH_ADD', n, { swapAdd: 1n });
    expect(nic.take()).toMatchObject([{ at: 2, orig: 2n }]);
  });

  it('the address vector: packets go to the new address, and are heard from there only', async () => {
    const nic = await LoneNic.create();
    const destinations: string[] = [];
    nic.host.connect((batch) => {
      destinations.push(`${batch.destinations[0]} ${batch.dscps[0]}`);
      return nic.nowNs;
    });
    await nic.qp.modify({ state: 'SQD' });
    await nic.qp.modify({ av: { address: IpAddress.parse('192.0.2.9'), dscp: 26 } });
    await nic.qp.modify({ state: 'RTS' });
    nic.qp.postSend(send(1));
    nic.take();
    expect(destinations).toEqual(['192.0.2.9 26']);
    nic.ack(0);
    expect(nic.device.counters().rx_drop_address).toBe(1);
  });
});

describe('a fence', () => {
  it.each([
    ['READ', (nic: LoneNic) => read(nic, 1), 'RDMA_READ_RESPONSE_ONLY', pattern(8)],
    ['atomic', (nic: LoneNic) => atomic(nic, 1), 'ATOMIC_ACKNOWLEDGE', undefined],
  ] as const)('waits until an earlier %s is complete', async (_, make, answer, payload) => {
    const nic = await LoneNic.create();
    nic.qp.postSend(make(nic), send(2, { fence: true }), send(3));
    expect(nic.take()).toHaveLength(1);
    nic.response(answer, 0, {}, payload);
    expect(nic.take().map((p) => p.at)).toEqual([1, 2]);
  });

  it('does not wait for SENDs and WRITEs', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend(send(1), send(2, { fence: true }));
    expect(nic.take()).toHaveLength(2);
  });

  it('without it a SEND overtakes the answer of the READ', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend(read(nic, 1), send(2));
    expect(nic.take()).toHaveLength(2);
  });
});

describe('local operations', () => {
  it('LOCAL_INV waits for all earlier work', async () => {
    const nic = await LoneNic.create();
    const region = await nic.pd.allocFastRegMr(4096);
    const key = region.nextKey();
    nic.qp.postSend(
      { opcode: 'REG_MR', wrId: 1, mr: region, key, offset: 0, length: 4096, iova: 0n, access: Access.LOCAL_WRITE },
      { opcode: 'SEND', wrId: 2, sges: [{ addr: 0n, length: 8, lkey: key }] },
      { opcode: 'LOCAL_INV', wrId: 3, invalidateRkey: key },
      { opcode: 'SEND', wrId: 4 },
    );
    expect(nic.take()).toHaveLength(1);
    expect(nic.done()).toMatchObject([{ wrId: 1, opcode: 'REG_MR', status: 0 }]);
    nic.ack(0);
    expect(nic.take()).toHaveLength(1);
    expect(nic.done()).toMatchObject([
      { wrId: 2, status: 0 },
      { wrId: 3, opcode: 'LOCAL_INV', status: 0 },
    ]);
  });

  it('complete in their turn, also around a retry', async () => {
    const nic = await LoneNic.create();
    const mw = await nic.pd.allocMw(1);
    nic.qp.postSend(
      send(1),
      { opcode: 'BIND_MW', wrId: 2, mw, rkey: mw.nextRkey(), mr: nic.mr, offset: 0, length: 8, access: 0 },
      send(3),
    );
    expect(nic.take()).toHaveLength(2);
    expect(nic.done()).toEqual([]);
    expect(nic.advance(80e6)).toHaveLength(2);
    nic.ack(0);
    expect(nic.done().map((wc) => wc.wrId)).toEqual([1, 2]);
    nic.ack(1);
    expect(nic.done().map((wc) => wc.wrId)).toEqual([3]);
  });

  it.each([
    [
      'LOCAL_INV',
      (nic: LoneNic): SendWorkRequest => ({ opcode: 'LOCAL_INV', wrId: 1, invalidateRkey: nic.mr.lkey }),
      2,
    ],
    ['LOCAL_INV of nothing', (): SendWorkRequest => ({ opcode: 'LOCAL_INV', wrId: 1, invalidateRkey: 1 }), 2],
  ])('%s that is not allowed fails', async (_, make, status) => {
    const nic = await LoneNic.create();
    nic.qp.postSend(make(nic));
    expect(nic.done()).toMatchObject([{ wrId: 1, status }]);
    expect(await nic.state()).toBe('ERR');
  });
});

describe('draining (SQD)', () => {
  it('finishes what was started, holds back what was not, and says when it is done, once', async () => {
    const nic = await LoneNic.create({ attr: { inflightPackets: 2 } });
    nic.qp.postSend({ opcode: 'SEND', wrId: 1, sges: [nic.mr.sge(0, 4 * MTU)] }, send(2));
    expect(nic.take()).toHaveLength(2);
    await nic.qp.modify({ state: 'SQD', enSqdAsyncNotify: true });
    nic.ack(1);
    expect(nic.take().map((p) => p.name)).toEqual(['SEND_MIDDLE', 'SEND_LAST']);
    await settle();
    expect(nic.asyncEvents).toEqual([]);
    nic.ack(3);
    expect(nic.take()).toEqual([]);
    await settle();
    expect(nic.asyncEvents).toEqual(['SQ_DRAINED']);
    expect(nic.done().map((wc) => wc.wrId)).toEqual([1]);
    nic.qp.postSend(send(3)); // Queued.
    expect(nic.take()).toEqual([]);
    await nic.qp.modify({ state: 'RTS' });
    expect(nic.take().map((p) => p.at)).toEqual([4, 5]);
  });

  it('is done at once when nothing is outstanding, and again the next time', async () => {
    const nic = await LoneNic.create();
    await nic.qp.modify({ state: 'SQD', enSqdAsyncNotify: true });
    await settle();
    await nic.qp.modify({ state: 'RTS' });
    await nic.qp.modify({ state: 'SQD', enSqdAsyncNotify: true });
    await settle();
    expect(nic.asyncEvents).toEqual(['SQ_DRAINED', 'SQ_DRAINED']);
  });

  it('still answers requests', async () => {
    const nic = await LoneNic.create();
    await nic.qp.modify({ state: 'SQD', enSqdAsyncNotify: true });
    nic.request('RDMA_WRITE_ONLY', 0, { ackReq: true }, pattern(8));
    nic.request('RDMA_READ_REQUEST', 1, { dmaLength: 8 });
    expect(nic.take().map((p) => p.name)).toEqual(['RDMA_READ_RESPONSE_ONLY', 'ACKNOWLEDGE']);
  });

  it('still retries what was started', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend(send(1));
    nic.take();
    await nic.qp.modify({ state: 'SQD', enSqdAsyncNotify: true });
    expect(nic.advance(80e6)).toHaveLength(1);
  });
});
