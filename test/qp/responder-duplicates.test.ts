/** Requests that arrive again: nothing is executed twice, everything is answered as it was. */

import { describe, expect, it } from 'vitest';
import { Access } from '../../src/verbs/access.js';
import { ack, LoneNic, MTU, nak, pattern } from '../support/lone-nic.js';

const full = pattern(MTU);
const short = pattern(100);

describe('SEND and WRITE', () => {
  it('are acknowledged again up to the newest, and not executed', async () => {
    const nic = await LoneNic.create();
    nic.qp.postRecv({ wrId: 1, sges: [nic.mr.sge(0, 100)] });
    nic.qp.postRecv({ wrId: 2, sges: [nic.mr.sge(100, 100)] });
    nic.request('SEND_ONLY', 0, { ackReq: true }, short);
    nic.request('RDMA_WRITE_ONLY', 1, { va: nic.mr.addr + 1000n, ackReq: true }, short);
    expect(nic.take()).toMatchObject([ack(1, 2)]);
    nic.mr.bytes.fill(0);
    nic.request('SEND_ONLY', 0, { ackReq: true }, short);
    expect(nic.take()).toMatchObject([ack(1, 2)]);
    nic.request('RDMA_WRITE_ONLY', 1, { va: nic.mr.addr + 1000n, ackReq: true }, short);
    expect(nic.take()).toMatchObject([ack(1, 2)]);
    expect(nic.mr.bytes.every((byte) => byte === 0)).toBe(true);
    expect(nic.received()).toHaveLength(1);
    expect(nic.device.counters().duplicate_request).toBe(2);
  });

  it('are acknowledged even when they do not ask: the packet that asks may be lost each time', async () => {
    const nic = await LoneNic.create();
    nic.request('RDMA_WRITE_ONLY', 0, {}, short);
    nic.request('RDMA_WRITE_ONLY', 1, {}, short);
    expect(nic.take()).toEqual([]);
    nic.request('RDMA_WRITE_ONLY', 0, {}, short);
    nic.request('RDMA_WRITE_ONLY', 1, {}, short);
    expect(nic.take()).toMatchObject([ack(1, 2)]);
  });

  it('in the middle of a message leave it as it is', async () => {
    const nic = await LoneNic.create();
    nic.request('RDMA_WRITE_FIRST', 0, { dmaLength: 3 * MTU }, full);
    nic.request('RDMA_WRITE_MIDDLE', 1, {}, full);
    nic.request('RDMA_WRITE_FIRST', 0, { dmaLength: 3 * MTU, ackReq: true }, full);
    expect(nic.take()).toMatchObject([ack(1, 0)]);
    nic.request('RDMA_WRITE_LAST', 2, { ackReq: true }, pattern(MTU, 5));
    expect(nic.take()).toMatchObject([ack(2, 1)]);
    expect(nic.mr.bytes.subarray(0, 3 * MTU)).toEqual(Buffer.concat([full, full, pattern(MTU, 5)]));
  });

  it('do not end the silence after a NAK', async () => {
    const nic = await LoneNic.create();
    nic.request('RDMA_WRITE_ONLY', 0, {}, short);
    nic.request('RDMA_WRITE_ONLY', 2, {}, short);
    expect(nic.take()).toMatchObject([nak(0x60, 1)]);
    nic.request('RDMA_WRITE_ONLY', 0, { ackReq: true }, short);
    expect(nic.take()).toMatchObject([ack(0, 1)]);
    nic.request('RDMA_WRITE_ONLY', 3, {}, short);
    expect(nic.take()).toEqual([]);
  });
});

describe('READ', () => {
  async function afterRead(lengthBytes: number) {
    const nic = await LoneNic.create();
    pattern(16 * MTU).copy(nic.mr.bytes);
    nic.request('RDMA_READ_REQUEST', 0, { dmaLength: lengthBytes });
    nic.take();
    return nic;
  }

  it('whole: the same responses again', async () => {
    const nic = await afterRead(3 * MTU);
    nic.request('RDMA_READ_REQUEST', 0, { dmaLength: 3 * MTU });
    const answers = nic.take();
    expect(answers.map((answer) => [answer.name, answer.at])).toEqual([
      ['RDMA_READ_RESPONSE_FIRST', 0],
      ['RDMA_READ_RESPONSE_MIDDLE', 1],
      ['RDMA_READ_RESPONSE_LAST', 2],
    ]);
    expect(answers[0].msn).toBe(1);
    expect(Buffer.concat(answers.map((answer) => answer.payload))).toEqual(nic.mr.bytes.subarray(0, 3 * MTU));
    // The next new request is unaffected.
    nic.request('RDMA_WRITE_ONLY', 3, { ackReq: true }, short);
    expect(nic.take()).toMatchObject([ack(3, 2)]);
  });

  it('from a packet on: what is left, as a message of its own', async () => {
    const nic = await afterRead(4 * MTU);
    nic.request('RDMA_READ_REQUEST', 2, { va: nic.mr.addr + BigInt(2 * MTU), dmaLength: 2 * MTU });
    const answers = nic.take();
    expect(answers.map((answer) => [answer.name, answer.at])).toEqual([
      ['RDMA_READ_RESPONSE_FIRST', 2],
      ['RDMA_READ_RESPONSE_LAST', 3],
    ]);
    expect(Buffer.concat(answers.map((answer) => answer.payload))).toEqual(nic.mr.bytes.subarray(2 * MTU, 4 * MTU));
  });

  it('bug 19: after a replay of the end, an earlier packet can still be asked for', async () => {
    // Narrowing the stored address to the partial replay would make the second request look out of range.
    const nic = await afterRead(4 * MTU);
    for (const k of [3, 1, 2, 0]) {
      nic.request('RDMA_READ_REQUEST', k, { va: nic.mr.addr + BigInt(k * MTU), dmaLength: (4 - k) * MTU });
      const answers = nic.take();
      expect(answers.map((answer) => answer.at)).toEqual([0, 1, 2, 3].slice(k));
      expect(Buffer.concat(answers.map((a) => a.payload))).toEqual(nic.mr.bytes.subarray(k * MTU, 4 * MTU));
    }
  });

  it.each([
    ['another key', (nic: LoneNic) => ({ rkey: nic.mr.rkey ^ 1, dmaLength: MTU })],
    ['an earlier address', (nic: LoneNic) => ({ va: nic.mr.addr - 1n, dmaLength: MTU })],
    ['an address behind', (nic: LoneNic) => ({ va: nic.mr.addr + BigInt(3 * MTU + 1), dmaLength: 1 })],
    ['more bytes', () => ({ dmaLength: 3 * MTU + 1 })],
    ['more than 2^31 bytes', () => ({ dmaLength: 2 ** 31 + 1 })],
  ])('with %s is dropped in silence', async (_, fields) => {
    const nic = await afterRead(3 * MTU);
    nic.request('RDMA_READ_REQUEST', 0, fields(nic));
    expect(nic.take()).toEqual([]);
    expect(await nic.state()).toBe('RTS');
  });

  it('shows the memory as it is now', async () => {
    const nic = await afterRead(100);
    nic.mr.bytes.fill(0xee);
    nic.request('RDMA_READ_REQUEST', 0, { dmaLength: 100 });
    expect(nic.take()).toMatchObject([{ payload: Buffer.alloc(100, 0xee) }]);
  });

  it('that the network delivers late leaves the answers that are owed to newer requests', async () => {
    const nic = await afterRead(2 * MTU);
    nic.request('RDMA_READ_REQUEST', 2, { va: nic.mr.addr + BigInt(2 * MTU), dmaLength: 2 * MTU });
    nic.request('FETCH_ADD', 4, { va: nic.mr.addr + BigInt(8 * MTU), swapAdd: 1n });
    nic.request('RDMA_READ_REQUEST', 5, { va: nic.mr.addr + BigInt(4 * MTU), dmaLength: 3 * MTU });
    nic.request('RDMA_READ_REQUEST', 0, { dmaLength: 2 * MTU });
    const answers = nic.take();
    expect(answers.map((answer) => answer.at)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(Buffer.concat(answers.slice(5).map((answer) => answer.payload))).toEqual(
      nic.mr.bytes.subarray(4 * MTU, 7 * MTU),
    );
  });

  it('of a part of what is pending is sent once, at its place', async () => {
    const nic = await LoneNic.create();
    pattern(16 * MTU).copy(nic.mr.bytes);
    nic.request('RDMA_READ_REQUEST', 0, { dmaLength: 6 * MTU });
    nic.request('RDMA_READ_REQUEST', 6, { va: nic.mr.addr + BigInt(6 * MTU), dmaLength: MTU });
    nic.request('RDMA_READ_REQUEST', 2, { va: nic.mr.addr + BigInt(2 * MTU), dmaLength: 2 * MTU });
    const answers = nic.take();
    expect(answers.map((answer) => answer.at)).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(Buffer.concat(answers.map((answer) => answer.payload))).toEqual(nic.mr.bytes.subarray(0, 7 * MTU));
  });

  it('of a region that is gone is a remote access error', async () => {
    const nic = await LoneNic.create();
    const region = await nic.pd.regMr(4096, Access.REMOTE_ALL);
    nic.request('RDMA_READ_REQUEST', 0, { va: region.addr, rkey: region.rkey, dmaLength: 100 });
    nic.take();
    await region.close();
    nic.request('RDMA_READ_REQUEST', 0, { va: region.addr, rkey: region.rkey, dmaLength: 100 });
    expect(nic.take()).toMatchObject([nak(0x62, 0)]);
  });

  it('bug 13: each of the last n is found, in any order', async () => {
    // A slot search that stops at the wrong place of the ring answers another READ, or none.
    const lengths = [2 * MTU, 10, MTU, 3 * MTU];
    const starts = [0, 2, 3, 4];
    for (const order of [
      [0, 1, 2, 3],
      [3, 2, 1, 0],
      [2, 0, 3, 1],
      [1, 3, 0, 2],
      [2, 2, 0, 0],
    ]) {
      const nic = await LoneNic.create();
      pattern(16 * MTU).copy(nic.mr.bytes);
      // Two earlier ones, so that the ring has gone round.
      for (let n = 0; n < 6; n++) {
        const k = n - 2;
        const fields = k < 0 ? { dmaLength: 8 } : { va: nic.mr.addr + BigInt(1000 * k), dmaLength: lengths[k] };
        nic.request('RDMA_READ_REQUEST', k < 0 ? n : 2 + starts[k], fields);
        nic.take();
      }
      for (const k of order) {
        nic.request('RDMA_READ_REQUEST', 2 + starts[k], { va: nic.mr.addr + BigInt(1000 * k), dmaLength: lengths[k] });
        const answers = nic.take();
        expect(answers[0].at).toBe(2 + starts[k]);
        expect(Buffer.concat(answers.map((answer) => answer.payload))).toEqual(
          nic.mr.bytes.subarray(1000 * k, 1000 * k + lengths[k]),
        );
      }
      // Older than the records reach back: silence.
      nic.request('RDMA_READ_REQUEST', 1, { dmaLength: 8 });
      expect(nic.take()).toEqual([]);
    }
  });
});

describe('atomics', () => {
  it('bug 14: a repeated one gets the stored value and is not executed again', async () => {
    const nic = await LoneNic.create();
    nic.mr.bytes.writeBigUInt64LE(100n, 0);
    nic.request('FETCH_ADD', 0, { swapAdd: 5n });
    expect(nic.take()).toMatchObject([{ name: 'ATOMIC_ACKNOWLEDGE', at: 0, orig: 100n, msn: 1 }]);
    nic.mr.bytes.writeBigUInt64LE(9999n, 0); // The answer comes from the record, not from memory.
    nic.request('FETCH_ADD', 0, { swapAdd: 5n });
    expect(nic.take()).toMatchObject([{ name: 'ATOMIC_ACKNOWLEDGE', at: 0, orig: 100n, msn: 1 }]);
    expect(nic.mr.bytes.readBigUInt64LE(0)).toBe(9999n);
  });

  it('are known by their PSN alone: a repeated one with other operands is not executed either', async () => {
    const nic = await LoneNic.create();
    nic.mr.bytes.writeBigUInt64LE(100n, 0);
    nic.mr.bytes.writeBigUInt64LE(200n, 8);
    nic.request('FETCH_ADD', 0, { swapAdd: 5n });
    nic.take();
    nic.request('FETCH_ADD', 0, { swapAdd: 7n });
    nic.request('COMPARE_SWAP', 0, { compare: 105n, swapAdd: 1n });
    nic.request('FETCH_ADD', 0, { swapAdd: 5n, va: nic.mr.addr + 8n });
    const answers = nic.take();
    expect(answers.length).toBeGreaterThan(0);
    for (const answer of answers) expect(answer).toMatchObject({ name: 'ATOMIC_ACKNOWLEDGE', at: 0, orig: 100n });
    expect([0, 8].map((at) => nic.mr.bytes.readBigUInt64LE(at))).toEqual([105n, 200n]);
    nic.request('COMPARE_SWAP', 1, { compare: 105n, swapAdd: 1n }); // The same request with the next PSN is executed.
    expect(nic.take()).toMatchObject([{ at: 1, orig: 105n }]);
    expect(nic.mr.bytes.readBigUInt64LE(0)).toBe(1n);
  });

  it('keep one record each', async () => {
    const nic = await LoneNic.create();
    for (let n = 0; n < 4; n++) nic.request('FETCH_ADD', n, { swapAdd: 1n });
    nic.take();
    for (const n of [2, 0, 3, 1]) {
      nic.request('FETCH_ADD', n, { swapAdd: 1n });
      expect(nic.take()).toMatchObject([{ at: n, orig: BigInt(n) }]);
    }
    expect(nic.mr.bytes.readBigUInt64LE(0)).toBe(4n);
  });

  it('that the network delivers late leave the answers that are owed to newer ones', async () => {
    const nic = await LoneNic.create();
    nic.request('FETCH_ADD', 0, { swapAdd: 1n });
    nic.take();
    nic.request('FETCH_ADD', 1, { swapAdd: 1n });
    nic.request('FETCH_ADD', 0, { swapAdd: 1n });
    expect(nic.take()).toMatchObject([
      { at: 0, orig: 0n },
      { at: 1, orig: 1n },
    ]);
  });

  it('whose record was recycled are dropped in silence', async () => {
    const nic = await LoneNic.create();
    for (let n = 0; n < 5; n++) {
      nic.request('FETCH_ADD', n, { swapAdd: 1n });
      nic.take();
    }
    nic.request('FETCH_ADD', 0, { swapAdd: 1n });
    expect(nic.take()).toEqual([]);
    expect(nic.mr.bytes.readBigUInt64LE(0)).toBe(5n);
  });

  it('are not answered from the record of a READ', async () => {
    const nic = await LoneNic.create();
    nic.request('RDMA_READ_REQUEST', 0, { dmaLength: 8 });
    nic.take();
    nic.request('FETCH_ADD', 0, { swapAdd: 1n });
    expect(nic.take()).toEqual([]);
    expect(nic.mr.bytes.readBigUInt64LE(0)).toBe(0n);
  });
});

describe('while a READ is being answered', () => {
  it('bug 25: the acknowledgement of a repeated SEND does not pass the READ', async () => {
    // An ACK of the newest PSN sent at once would tell the requester that the READ's responses were lost.
    const nic = await LoneNic.create();
    nic.qp.postRecv({ sges: [nic.mr.sge()] });
    nic.request('SEND_ONLY', 0, {}, short);
    nic.request('RDMA_READ_REQUEST', 1, { dmaLength: 3 * MTU });
    nic.request('SEND_ONLY', 0, { ackReq: true }, short);
    const answers = nic.take();
    expect(answers.map((answer) => [answer.name, answer.at])).toEqual([
      ['RDMA_READ_RESPONSE_FIRST', 1],
      ['RDMA_READ_RESPONSE_MIDDLE', 2],
      ['RDMA_READ_RESPONSE_LAST', 3],
      ['ACKNOWLEDGE', 3],
    ]);
  });

  it('a repeat of it starts it over instead of answering twice', async () => {
    const nic = await LoneNic.create();
    nic.request('RDMA_READ_REQUEST', 0, { dmaLength: 3 * MTU });
    nic.request('RDMA_READ_REQUEST', 0, { dmaLength: 3 * MTU });
    expect(nic.take().map((answer) => answer.at)).toEqual([0, 1, 2]);
  });
});
