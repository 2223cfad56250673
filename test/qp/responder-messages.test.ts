/** What the responder executes and how it answers: SEND, WRITE, READ, atomics, message numbers, coalesced acknowledgements. */

import { describe, expect, it } from 'vitest';
import { Access } from '../../src/verbs/access.js';
import { ack, connectToPeer, LoneNic, MTU, nak, pattern } from '../support/lone-nic.js';
import { runToRest } from '../support/virtual-time.js';

const full = pattern(MTU);
const short = pattern(100);
const nothing = new Uint8Array(0);

describe('SEND', () => {
  it('fills the scatter list in order and completes at its last packet', async () => {
    const nic = await LoneNic.create();
    nic.qp.postRecv({ wrId: 1, sges: [nic.mr.sge(5000, 300), nic.mr.sge(0, 4000)] });
    const message = pattern(2 * MTU + 100);
    nic.request('SEND_FIRST', 0, {}, message.subarray(0, MTU));
    nic.request('SEND_MIDDLE', 1, {}, message.subarray(MTU, 2 * MTU));
    expect(nic.received()).toEqual([]);
    nic.request('SEND_LAST', 2, { ackReq: true }, message.subarray(2 * MTU));
    expect(nic.take()).toMatchObject([ack(2, 1)]);
    expect(nic.received()).toMatchObject([{ wrId: 1, status: 0, opcode: 'RECV', byteLen: message.length }]);
    const placed = Buffer.concat([nic.mr.bytes.subarray(5000, 5300), nic.mr.bytes.subarray(0, message.length - 300)]);
    expect(placed).toEqual(message);
  });

  it('of zero bytes takes a receive without buffers', async () => {
    const nic = await LoneNic.create();
    nic.qp.postRecv({ wrId: 1 });
    nic.request('SEND_ONLY', 0, { ackReq: true });
    expect(nic.take()).toMatchObject([ack(0, 1)]);
    expect(nic.received()).toMatchObject([{ wrId: 1, status: 0, byteLen: 0 }]);
  });

  it.each(['ONLY', 'LAST'])('%s with immediate delivers the four bytes', async (place) => {
    const nic = await LoneNic.create();
    nic.qp.postRecv({ sges: [nic.mr.sge()] });
    let psn = 0;
    if (place === 'LAST') nic.request('SEND_FIRST', psn++, {}, full);
    nic.request(`SEND_${place}_WITH_IMMEDIATE`, psn, { immediate: 0x80000001 }, short);
    expect(nic.received()).toMatchObject([{ status: 0, opcode: 'RECV', immediate: 0x80000001 }]);
  });

  it('gives each message the next receive, in the order posted', async () => {
    const nic = await LoneNic.create();
    for (const wrId of [10, 11, 12]) nic.qp.postRecv({ wrId, sges: [nic.mr.sge(wrId * 100, 100)] });
    for (let n = 0; n < 3; n++) nic.request('SEND_ONLY', n, {}, pattern(100, n));
    expect(nic.received().map((wc) => wc.wrId)).toEqual([10, 11, 12]);
    expect(nic.mr.bytes.subarray(1100, 1200)).toEqual(pattern(100, 1));
  });
});

describe('SEND with invalidate', () => {
  async function withFastRegion(nic: LoneNic) {
    const region = await nic.pd.allocFastRegMr(4096);
    const key = region.nextKey();
    const access = Access.REMOTE_ALL;
    nic.qp.postSend({ opcode: 'REG_MR', mr: region, key, offset: 0, length: 4096, iova: 0x1000n, access });
    expect(nic.done()).toMatchObject([{ status: 0 }]);
    return key;
  }

  it.each(['ONLY', 'LAST'])('%s: the key is dead before the completion says so', async (place) => {
    const nic = await LoneNic.create();
    const rkey = await withFastRegion(nic);
    nic.qp.postRecv({ wrId: 1, sges: [nic.mr.sge()] });
    nic.request('RDMA_WRITE_ONLY', 0, { va: 0x1000n, rkey }, short);
    let psn = 1;
    if (place === 'LAST') nic.request('SEND_FIRST', psn++, {}, full);
    nic.request(`SEND_${place}_WITH_INVALIDATE`, psn, { invalidateRkey: rkey, ackReq: true }, short);
    expect(nic.take()).toMatchObject([ack(psn, 2)]);
    expect(nic.received()).toMatchObject([{ wrId: 1, status: 0, opcode: 'RECV', invalidatedRkey: rkey }]);
    nic.request('RDMA_WRITE_ONLY', psn + 1, { va: 0x1000n, rkey }, short);
    expect(nic.take()).toMatchObject([nak(0x62, psn + 1)]);
  });

  it.each([
    ['an ordinary region', (nic: LoneNic) => nic.mr.rkey],
    ['nothing', () => 0xdeadbeef],
  ])('of %s: the data is acknowledged, the receive fails, the QP stops without a NAK', async (_, key) => {
    const nic = await LoneNic.create();
    nic.qp.postRecv({ wrId: 1, sges: [nic.mr.sge()] });
    nic.request('SEND_ONLY_WITH_INVALIDATE', 0, { invalidateRkey: key(nic), ackReq: true }, short);
    expect(nic.take()).toMatchObject([ack(0, 1)]);
    expect(nic.received()).toMatchObject([{ wrId: 1, status: 9 }]);
    expect(await nic.state()).toBe('ERR');
  });
});

describe('an error while what was kept behind a gap is executed', () => {
  it('executes nothing more', async () => {
    const nic = await LoneNic.create({ attr: { recovery: 'selective-repeat' } });
    nic.qp.postRecv({ wrId: 1, sges: [nic.mr.sge(0, 100)] });
    nic.request('RDMA_WRITE_ONLY', 1, { va: nic.mr.addr + 1000n }, pattern(64));
    nic.request('FETCH_ADD', 2, { va: nic.mr.addr + 2000n, swapAdd: 1n });
    nic.take();
    nic.request('SEND_ONLY_WITH_INVALIDATE', 0, { invalidateRkey: 0xdeadbeef, ackReq: true }, short);
    expect(await nic.state()).toBe('ERR');
    expect(nic.mr.bytes.subarray(1000).every((byte) => byte === 0)).toBe(true);
    expect(nic.take()).toMatchObject([{ name: 'SACK', at: 1 }]); // It acknowledges what stands before it.
  });

  it('by a full completion queue too', async () => {
    const nic = await LoneNic.create({ state: 'RESET' });
    const recvCq = await nic.device.createCq(1);
    const qp = await nic.pd.createQp({ sendCq: nic.cq, recvCq });
    await connectToPeer(qp, 'RTS', { recovery: 'selective-repeat' });
    for (let n = 0; n < 2; n++) qp.postRecv({ wrId: n, sges: [nic.mr.sge(0, 100)] });
    const request = (name: string, at: number, va: bigint) =>
      nic.request(name, at, { destQpn: qp.qpn, va, ackReq: true }, short);
    request('SEND_ONLY', 1, 0n);
    request('RDMA_WRITE_ONLY', 2, nic.mr.addr + 1000n);
    nic.take();
    request('SEND_ONLY', 0, 0n); // Its completion takes the only place; that of the next finds none.
    expect((await qp.query()).state).toBe('ERR');
    expect(nic.mr.bytes.subarray(1000).every((byte) => byte === 0)).toBe(true);
    expect(nic.take()).toEqual([]);
  });
});

describe('WRITE', () => {
  it('places each packet as it arrives', async () => {
    const nic = await LoneNic.create();
    const message = pattern(2 * MTU + 3);
    const va = nic.mr.addr + 1001n;
    nic.request('RDMA_WRITE_FIRST', 0, { va, dmaLength: message.length }, message.subarray(0, MTU));
    expect(nic.mr.bytes.subarray(1001, 1001 + MTU)).toEqual(message.subarray(0, MTU));
    nic.request('RDMA_WRITE_MIDDLE', 1, {}, message.subarray(MTU, 2 * MTU));
    nic.request('RDMA_WRITE_LAST', 2, { ackReq: true }, message.subarray(2 * MTU));
    expect(nic.take()).toMatchObject([ack(2, 1)]);
    expect(nic.mr.bytes.subarray(1001, 1001 + message.length)).toEqual(message);
    expect(nic.mr.bytes[1000]).toBe(0);
    expect(nic.mr.bytes[1001 + message.length]).toBe(0);
    expect(nic.received()).toEqual([]);
  });

  it('takes a LAST of exactly the path MTU', async () => {
    const nic = await LoneNic.create();
    nic.request('RDMA_WRITE_FIRST', 0, { dmaLength: 2 * MTU }, full);
    nic.request('RDMA_WRITE_LAST', 1, { ackReq: true }, full);
    expect(nic.take()).toMatchObject([ack(1, 1)]);
  });

  it('with immediate takes a receive, writes nothing into it and reports the whole length', async () => {
    const nic = await LoneNic.create();
    const receive = await nic.pd.regMr(4096, Access.LOCAL_WRITE);
    nic.qp.postRecv({ wrId: 5, sges: [receive.sge()] });
    nic.request('RDMA_WRITE_ONLY_WITH_IMMEDIATE', 0, { immediate: 7, ackReq: true }, short);
    expect(nic.take()).toMatchObject([ack(0, 1)]);
    expect(nic.received()).toMatchObject([{ wrId: 5, opcode: 'RECV_RDMA_WITH_IMM', byteLen: 100, immediate: 7 }]);
    expect(receive.bytes.every((byte) => byte === 0)).toBe(true);
  });
});

describe('READ', () => {
  it.each([
    [1, ['ONLY']],
    [MTU, ['ONLY']],
    [MTU + 1, ['FIRST', 'LAST']],
    [3 * MTU, ['FIRST', 'MIDDLE', 'LAST']],
  ])('of %i bytes is answered with %j', async (dmaLength, places) => {
    const nic = await LoneNic.create();
    pattern(4096).copy(nic.mr.bytes);
    nic.request('RDMA_READ_REQUEST', 0, { va: nic.mr.addr + 10n, dmaLength, ackReq: true });
    const answers = nic.take();
    expect(answers).toMatchObject(places.map((place, k) => ({ name: `RDMA_READ_RESPONSE_${place}`, at: k })));
    for (const answer of answers) {
      if (!answer.name.endsWith('MIDDLE')) expect(answer).toMatchObject({ syndrome: 0x1f, msn: 1 });
    }
    expect(Buffer.concat(answers.map((answer) => answer.payload))).toEqual(nic.mr.bytes.subarray(10, 10 + dmaLength));
    // The next request has the PSN behind all its responses.
    nic.request('RDMA_WRITE_ONLY', places.length, { ackReq: true }, short);
    expect(nic.take()).toMatchObject([ack(places.length, 2)]);
  });

  it('whose region goes away while it is answered ends with NAK 0x62 at the packet that is missing', async () => {
    const nic = await LoneNic.create();
    const region = await nic.pd.regMr(4096, Access.REMOTE_ALL);
    let sent = 0;
    nic.host.connect((batch) => {
      sent++;
      return nic.nowNs + batch.count * 1000; // Slow: the region is closed between two packets.
    });
    nic.request('RDMA_READ_REQUEST', 0, { va: region.addr, rkey: region.rkey, dmaLength: 4096 });
    runToRest(nic.events, { done: () => sent === 3 });
    await region.close();
    runToRest(nic.events, { untilNs: nic.nowNs + 1e6 });
    expect(sent).toBe(4);
    expect(await nic.state()).toBe('ERR');
    expect(nic.device.counters().resp_nak_fatal).toBe(1);
  });
});

describe('zero length', () => {
  it.each([
    ['RDMA_WRITE_ONLY', ack(0, 1)],
    ['RDMA_READ_REQUEST', { name: 'RDMA_READ_RESPONSE_ONLY', at: 0, msn: 1, payload: Buffer.alloc(0) }],
  ])('%s looks at neither key nor address', async (name, answer) => {
    const nic = await LoneNic.create();
    nic.request(name, 0, { rkey: 0xdeadbeef, va: 0xffffffffffffffffn, dmaLength: 0, ackReq: true });
    expect(nic.take()).toMatchObject([answer]);
  });

  it('WRITE with immediate still takes a receive', async () => {
    const nic = await LoneNic.create();
    nic.qp.postRecv({ wrId: 6 });
    nic.request('RDMA_WRITE_ONLY_WITH_IMMEDIATE', 0, { rkey: 0xdeadbeef, dmaLength: 0, immediate: 1, ackReq: true });
    expect(nic.take()).toMatchObject([ack(0, 1)]);
    expect(nic.received()).toMatchObject([{ wrId: 6, status: 0, byteLen: 0, immediate: 1 }]);
  });
});

describe('atomics', () => {
  const at = (nic: LoneNic, offset: number) => nic.mr.addr + BigInt(offset);

  it.each([
    [5n, 3n, 8n],
    [0xffffffffn, 1n, 0x100000000n], // Carry between the halves.
    [0xffffffffffffffffn, 1n, 0n], // Wrap.
    [0x8000000000000001n, 0xffffffffffffffffn, 0x8000000000000000n],
  ])('FETCH_ADD: %i + %i', async (before, swapAdd, after) => {
    const nic = await LoneNic.create();
    nic.mr.bytes.writeBigUInt64LE(before, 16);
    nic.request('FETCH_ADD', 0, { va: at(nic, 16), swapAdd, ackReq: true });
    expect(nic.take()).toMatchObject([{ name: 'ATOMIC_ACKNOWLEDGE', at: 0, orig: before, msn: 1, syndrome: 0x1f }]);
    expect(nic.mr.bytes.readBigUInt64LE(16)).toBe(after);
  });

  it.each([
    ['equal', 0x1122334455667788n, 0x99aabbccddeeff00n],
    ['the low half differs', 0x1122334455667789n, 0x1122334455667788n],
    ['the high half differs', 0x9122334455667788n, 0x1122334455667788n],
  ])('COMPARE_SWAP: %s', async (_, compare, after) => {
    const nic = await LoneNic.create();
    nic.mr.bytes.writeBigUInt64LE(0x1122334455667788n, 0);
    nic.request('COMPARE_SWAP', 0, { compare, swapAdd: 0x99aabbccddeeff00n });
    expect(nic.take()).toMatchObject([{ name: 'ATOMIC_ACKNOWLEDGE', orig: 0x1122334455667788n }]);
    expect(nic.mr.bytes.readBigUInt64LE(0)).toBe(after);
  });

  it.each([1, 2, 4, 7])('at an address that is %i off are an invalid request, bad key or not', async (offset) => {
    const nic = await LoneNic.create();
    nic.request('FETCH_ADD', 0, { va: at(nic, offset), swapAdd: 1n, rkey: 0xdeadbeef });
    expect(nic.take()).toMatchObject([nak(0x61, 0)]);
  });

  it('follow each other in one memory word', async () => {
    const nic = await LoneNic.create();
    for (let n = 0; n < 4; n++) nic.request('FETCH_ADD', n, { swapAdd: 10n });
    expect(nic.take().map((answer) => answer.orig)).toEqual([0n, 10n, 20n, 30n]);
  });
});

describe('order of answers', () => {
  it('one acknowledgement stands for all that arrived before it', async () => {
    const nic = await LoneNic.create();
    for (let n = 0; n < 5; n++) nic.request('RDMA_WRITE_ONLY', n, { ackReq: true }, short);
    expect(nic.take()).toMatchObject([ack(4, 5)]);
  });

  it('nothing is said when nothing is asked', async () => {
    const nic = await LoneNic.create();
    nic.request('RDMA_WRITE_ONLY', 0, {}, short);
    expect(nic.take()).toEqual([]);
  });

  it('READs and atomics are answered in the order asked', async () => {
    const nic = await LoneNic.create();
    nic.request('RDMA_READ_REQUEST', 0, { dmaLength: 2 * MTU });
    nic.request('FETCH_ADD', 2, { swapAdd: 1n });
    nic.request('RDMA_READ_REQUEST', 3, { dmaLength: 8 });
    expect(nic.take().map((answer) => answer.at)).toEqual([0, 1, 2, 3]);
  });

  it.each([
    ['an ACK', (nic: LoneNic) => nic.request('RDMA_WRITE_ONLY', 3, { ackReq: true }, short), ack(3, 2)],
    ['an RNR NAK', (nic: LoneNic) => nic.request('SEND_ONLY', 3, {}, short), nak(0x2c, 3)],
    ['a sequence NAK', (nic: LoneNic) => nic.request('SEND_ONLY', 4, {}, short), nak(0x60, 3)],
    ['a fatal NAK', (nic: LoneNic) => nic.request('SEND_LAST', 3, {}, short), nak(0x61, 3)],
  ])('%s waits behind the responses of an earlier READ', async (_, send, last) => {
    const nic = await LoneNic.create();
    nic.request('RDMA_READ_REQUEST', 0, { dmaLength: 3 * MTU });
    send(nic);
    const answers = nic.take();
    expect(answers.map((answer) => answer.name)).toEqual([
      'RDMA_READ_RESPONSE_FIRST',
      'RDMA_READ_RESPONSE_MIDDLE',
      'RDMA_READ_RESPONSE_LAST',
      'ACKNOWLEDGE',
    ]);
    expect(answers[3]).toMatchObject(last);
  });

  it('the responses of an accepted READ leave even when the next request is fatal, and show the memory as it was', async () => {
    const nic = await LoneNic.create();
    pattern(MTU, 9).copy(nic.mr.bytes);
    nic.request('RDMA_READ_REQUEST', 0, { dmaLength: 8 });
    nic.request('RDMA_WRITE_ONLY', 1, { rkey: 1 }, short);
    expect(nic.take()).toMatchObject([{ at: 0, payload: pattern(MTU, 9).subarray(0, 8) }, nak(0x62, 1)]);
  });
});

describe('message sequence number', () => {
  it('bug 04: counts every message once: SEND, WRITE, READ, atomic, zero-length ones too, and no packet of the middle', async () => {
    // Counting only what makes a receive completion would leave out the WRITEs; counting packets would run ahead.
    const nic = await LoneNic.create();
    nic.qp.postRecv({ sges: [nic.mr.sge()] });
    nic.qp.postRecv();
    const msns: number[] = [];
    const say = (name: string, at: number, fields = {}, payload: Uint8Array = nothing) => {
      nic.request(name, at, { ackReq: true, ...fields }, payload);
      msns.push(...nic.take().map((answer) => answer.msn));
    };
    say('SEND_FIRST', 0, {}, full);
    say('SEND_LAST', 1, {}, short);
    say('RDMA_WRITE_FIRST', 2, { dmaLength: MTU + 100 }, full);
    say('RDMA_WRITE_LAST', 3, {}, short);
    say('RDMA_WRITE_ONLY', 4, { dmaLength: 0 });
    say('RDMA_READ_REQUEST', 5, { dmaLength: 8 });
    say('FETCH_ADD', 6);
    say('RDMA_WRITE_ONLY_WITH_IMMEDIATE', 7, {}, short);
    say('RDMA_WRITE_ONLY', 7, {}, short); // A duplicate counts nothing.
    expect(msns).toEqual([0, 1, 1, 2, 3, 4, 5, 6, 6]);
  });

  it('a READ counts when it is accepted, so that its first response carries it', async () => {
    const nic = await LoneNic.create();
    nic.request('RDMA_READ_REQUEST', 0, { dmaLength: 2 * MTU });
    nic.request('RDMA_WRITE_ONLY', 2, { ackReq: true }, short);
    expect(nic.take()).toMatchObject([{ msn: 1 }, { msn: 1 }, ack(2, 2)]);
  });
});

describe('the state RTR', () => {
  it('receives, executes and answers, and tells that communication is established, once', async () => {
    const nic = await LoneNic.create({ state: 'RTR' });
    nic.qp.postRecv({ sges: [nic.mr.sge()] });
    nic.request('SEND_ONLY', 0, { ackReq: true }, short);
    nic.request('RDMA_READ_REQUEST', 1, { dmaLength: 8 });
    nic.request('FETCH_ADD', 2, { swapAdd: 1n });
    expect(nic.take().map((answer) => answer.name)).toEqual([
      'RDMA_READ_RESPONSE_ONLY',
      'ATOMIC_ACKNOWLEDGE',
      'ACKNOWLEDGE',
    ]);
    await Promise.resolve();
    expect(nic.asyncEvents).toEqual(['COMM_EST']);
  });

  it('does not hear responses', async () => {
    const nic = await LoneNic.create({ state: 'RTR' });
    nic.ack(0);
    expect(nic.device.counters()).toMatchObject({ rx_drop_qp_state: 1, rx_accepted: 0 });
    await Promise.resolve();
    expect(nic.asyncEvents).toEqual([]);
  });

  it.each(['RESET', 'INIT'] as const)('%s hears nothing', async (state) => {
    const nic = await LoneNic.create({ state });
    nic.request('RDMA_WRITE_ONLY', 0, { ackReq: true }, short);
    expect(nic.take()).toEqual([]);
    expect(nic.device.counters()).toMatchObject({ rx_drop_qp_state: 1 });
  });
});
