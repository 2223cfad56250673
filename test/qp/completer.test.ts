/** What the requester makes of what comes back: the table of responses against the oldest unfinished work request. */

import { describe, expect, it } from 'vitest';
import type { SendWorkRequest } from '../../src/verbs/send-work-request.js';
import { LoneNic, MTU, pattern } from '../support/lone-nic.js';

const REMOTE = { remoteAddr: 0x1000n, rkey: 1 };
const send = (nic: LoneNic, wrId: number, size = 8): SendWorkRequest => ({
  opcode: 'SEND',
  wrId,
  sges: [nic.mr.sge(0, size)],
});
const read = (nic: LoneNic, wrId: number, size: number, offset = 0): SendWorkRequest => ({
  opcode: 'RDMA_READ',
  wrId,
  sges: [nic.mr.sge(offset, size)],
  ...REMOTE,
});
const fetchAdd = (nic: LoneNic, wrId: number, offset = 0): SendWorkRequest => ({
  opcode: 'ATOMIC_FETCH_AND_ADD',
  wrId,
  add: 1n,
  sges: [nic.mr.sge(offset, 8)],
  ...REMOTE,
});

/** A NIC with these requests on the wire. */
async function withSent(make: (nic: LoneNic) => SendWorkRequest[], attr = {}) {
  const nic = await LoneNic.create({ attr });
  nic.qp.postSend(...make(nic));
  return { nic, sent: nic.take() };
}

const wrIds = (nic: LoneNic) => nic.done().map((wc) => wc.wrId);

describe('an ACK', () => {
  it('completes its request', async () => {
    const { nic } = await withSent((n) => [send(n, 1)]);
    nic.ack(0);
    expect(nic.done()).toMatchObject([{ wrId: 1, status: 0, opcode: 'SEND' }]);
  });

  it('of a later request completes the earlier ones, in order', async () => {
    const { nic } = await withSent((n) => [send(n, 1), send(n, 2), send(n, 3), send(n, 4)]);
    nic.ack(2);
    expect(wrIds(nic)).toEqual([1, 2, 3]);
  });

  it('in the middle of a message completes nothing', async () => {
    const { nic } = await withSent((n) => [send(n, 1, 3 * MTU)]);
    nic.ack(0);
    nic.ack(1);
    expect(wrIds(nic)).toEqual([]);
    nic.ack(2);
    expect(wrIds(nic)).toEqual([1]);
  });

  it.each([0x00, 0x05, 0x1e, 0x1f])('counts whatever credits it carries (syndrome %i)', async (syndrome) => {
    const { nic } = await withSent((n) => [send(n, 1)]);
    nic.ack(0, syndrome);
    expect(wrIds(nic)).toEqual([1]);
  });

  it.each([0x40, 0x5f, 0x80, 0x9f, 0xff])('with the reserved syndrome %i does not', async (syndrome) => {
    const { nic } = await withSent((n) => [send(n, 1)]);
    nic.ack(0, syndrome);
    expect(wrIds(nic)).toEqual([]);
    expect(await nic.state()).toBe('RTS');
  });

  it.each([1, 2, 0x7ffffe])('of PSN %i, which was never sent, is ignored', async (at) => {
    const { nic } = await withSent((n) => [send(n, 1)]);
    nic.ack(at);
    expect(wrIds(nic)).toEqual([]);
    expect(nic.device.counters()).toMatchObject({ stale_response: 0, unsent_response: 1 });
    await nic.state();
    expect(nic.asyncEvents).toEqual(['QP_UNSENT_RESPONSE']);
  });

  it('that is older than everything outstanding is ignored', async () => {
    const { nic } = await withSent((n) => [send(n, 1), send(n, 2)]);
    nic.ack(0);
    nic.ack(0);
    nic.ack(-1);
    nic.ack(-0x7ffffd);
    expect(wrIds(nic)).toEqual([1]);
    expect(nic.device.counters().stale_response).toBe(3);
  });

  it('when nothing is outstanding is ignored', async () => {
    const nic = await LoneNic.create();
    nic.ack(0);
    nic.ack(-1);
    expect(nic.take()).toEqual([]);
    expect(await nic.state()).toBe('RTS');
  });

  it('with a flipped bit is dropped', async () => {
    const { nic } = await withSent((n) => [send(n, 1)]);
    const deliver = nic.deliver.bind(nic);
    nic.deliver = (packet) => deliver(packet, { bit: 95 }); // The lowest bit of the PSN.
    nic.ack(0);
    expect(wrIds(nic)).toEqual([]);
    expect(nic.device.counters().rx_icrc_errors).toBe(1);
  });
});

describe('an ACK over a READ or atomic', () => {
  it.each([
    ['READ', (n: LoneNic) => read(n, 2, 2 * MTU), 2],
    ['atomic', (n: LoneNic) => fetchAdd(n, 2), 1],
  ])('%s: past it says that its response was lost: it is asked for again at once', async (_, make, psns) => {
    const { nic, sent } = await withSent((n) => [send(n, 1), make(n), send(n, 3)]);
    nic.ack(1 + psns);
    expect(nic.take()).toMatchObject([
      { name: sent[1].name, at: 1 },
      { name: 'SEND_ONLY', at: 1 + psns },
    ]);
    expect(wrIds(nic)).toEqual([1]);
    expect(nic.device.counters().implied_nak_seq_err).toBe(1);
  });

  it('of part of a READ says nothing about it', async () => {
    const { nic } = await withSent((n) => [send(n, 1), read(n, 2, 3 * MTU)]);
    nic.ack(2);
    expect(wrIds(nic)).toEqual([1]);
    expect(nic.take()).toEqual([]);
  });

  it('up to the end of a READ never completes it', async () => {
    const { nic } = await withSent((n) => [read(n, 1, 2 * MTU)]);
    nic.ack(1);
    expect(wrIds(nic)).toEqual([]);
    expect(nic.take()).toMatchObject([{ name: 'RDMA_READ_REQUEST', at: 0, dmaLength: 2 * MTU }]);
  });
});

describe('READ responses', () => {
  it('complete the READ with their last packet, and every SEND and WRITE before it', async () => {
    const { nic } = await withSent((n) => [send(n, 1), read(n, 2, 2 * MTU + 10)]);
    const data = pattern(2 * MTU + 10);
    nic.response('RDMA_READ_RESPONSE_FIRST', 1, {}, data.subarray(0, MTU));
    expect(wrIds(nic)).toEqual([1]);
    nic.response('RDMA_READ_RESPONSE_MIDDLE', 2, {}, data.subarray(MTU, 2 * MTU));
    expect(wrIds(nic)).toEqual([]);
    nic.response('RDMA_READ_RESPONSE_LAST', 3, {}, data.subarray(2 * MTU));
    expect(nic.done()).toMatchObject([{ wrId: 2, status: 0, byteLen: 2 * MTU + 10 }]);
    expect(nic.mr.bytes.subarray(0, data.length)).toEqual(data);
  });

  it('that leave a hole make the NIC ask again from the hole, once, and are not placed', async () => {
    const { nic } = await withSent((n) => [read(n, 1, 4 * MTU)]);
    const data = pattern(4 * MTU);
    nic.response('RDMA_READ_RESPONSE_FIRST', 0, {}, data.subarray(0, MTU));
    nic.response('RDMA_READ_RESPONSE_MIDDLE', 2, {}, data.subarray(2 * MTU, 3 * MTU));
    nic.response('RDMA_READ_RESPONSE_LAST', 3, {}, data.subarray(3 * MTU));
    expect(nic.take()).toMatchObject([
      { name: 'RDMA_READ_REQUEST', at: 1, va: REMOTE.remoteAddr + BigInt(MTU), dmaLength: 3 * MTU },
    ]);
    expect(nic.mr.bytes.subarray(MTU).every((byte) => byte === 0)).toBe(true);
    expect(nic.device.counters().read_response_gaps).toBe(2);
  });

  it.each([
    ['as a message of its own (FIRST .. LAST)', ['FIRST', 'MIDDLE', 'LAST']],
    ['as the rest of the old one (MIDDLE .. LAST)', ['MIDDLE', 'MIDDLE', 'LAST']],
    ['as single packets (ONLY)', ['ONLY', 'ONLY', 'ONLY']],
  ])('of a repeated READ are accepted %s', async (_, places) => {
    const { nic } = await withSent((n) => [read(n, 1, 4 * MTU - 5)]);
    const data = pattern(4 * MTU - 5);
    nic.response('RDMA_READ_RESPONSE_FIRST', 0, {}, data.subarray(0, MTU));
    expect(nic.advance(80e6)).toMatchObject([{ at: 1, dmaLength: 3 * MTU - 5 }]);
    places.forEach((place, k) => {
      nic.response(`RDMA_READ_RESPONSE_${place}`, 1 + k, {}, data.subarray((1 + k) * MTU, (2 + k) * MTU));
    });
    expect(nic.done()).toMatchObject([{ wrId: 1, status: 0 }]);
    expect(nic.mr.bytes.subarray(0, data.length)).toEqual(data);
  });

  it('that come twice are placed once', async () => {
    const { nic } = await withSent((n) => [read(n, 1, 2 * MTU)]);
    nic.response('RDMA_READ_RESPONSE_FIRST', 0, {}, pattern(MTU, 1));
    nic.response('RDMA_READ_RESPONSE_FIRST', 0, {}, pattern(MTU, 2));
    expect(nic.mr.bytes.subarray(0, MTU)).toEqual(pattern(MTU, 1));
    expect(nic.device.counters().stale_response).toBe(1);
  });

  it.each([
    ['FIRST', 0, MTU - 4],
    ['FIRST', 0, MTU + 4],
    ['MIDDLE', 0, 4],
    ['ONLY', 0, 100],
    ['LAST', 1, 99],
    ['LAST', 1, 101],
    ['LAST', 1, 0],
  ])('%s at %i with %i bytes is a bad response', async (place, at, size) => {
    const { nic } = await withSent((n) => [read(n, 1, MTU + 100)]);
    if (at > 0) nic.response('RDMA_READ_RESPONSE_FIRST', 0, {}, pattern(MTU));
    nic.response(`RDMA_READ_RESPONSE_${place}`, at, {}, pattern(size));
    expect(nic.done()).toMatchObject([{ wrId: 1, status: 7, statusName: 'BAD_RESP_ERR' }]);
    expect(await nic.state()).toBe('ERR');
  });

  it.each([0x60, 0x2c, 0x40])('with syndrome %i instead of an ACK is a bad response', async (syndrome) => {
    const { nic } = await withSent((n) => [read(n, 1, 8)]);
    nic.response('RDMA_READ_RESPONSE_ONLY', 0, { syndrome }, pattern(8));
    expect(nic.done()).toMatchObject([{ wrId: 1, status: 7 }]);
  });

  it('of zero bytes complete a zero-length READ', async () => {
    const { nic } = await withSent((n) => [read(n, 1, 0)]);
    nic.response('RDMA_READ_RESPONSE_ONLY', 0);
    expect(nic.done()).toMatchObject([{ wrId: 1, status: 0, byteLen: 0 }]);
  });
});

describe('an answer of the wrong kind', () => {
  it.each([
    ['a READ response to a SEND', (n: LoneNic) => send(n, 1), 'RDMA_READ_RESPONSE_ONLY'],
    ['an atomic answer to a SEND', (n: LoneNic) => send(n, 1), 'ATOMIC_ACKNOWLEDGE'],
    ['an atomic answer to a READ', (n: LoneNic) => read(n, 1, 8), 'ATOMIC_ACKNOWLEDGE'],
    ['a READ response to an atomic', (n: LoneNic) => fetchAdd(n, 1), 'RDMA_READ_RESPONSE_ONLY'],
  ])('%s is a bad response', async (_, make, name) => {
    const { nic } = await withSent((n) => [make(n)]);
    nic.response(name, 0, {}, name.startsWith('ATOMIC') ? undefined : pattern(8));
    expect(nic.done()).toMatchObject([{ wrId: 1, status: 7 }]);
    expect(nic.mr.bytes.every((byte) => byte === 0)).toBe(true);
  });
});

describe('an atomic answer', () => {
  it('stores the old value in the order of this host', async () => {
    const { nic } = await withSent((n) => [fetchAdd(n, 1, 24)]);
    nic.response('ATOMIC_ACKNOWLEDGE', 0, { orig: 0x0102030405060708n });
    expect(nic.done()).toMatchObject([{ wrId: 1, status: 0, opcode: 'FETCH_ADD', byteLen: 8 }]);
    expect(nic.mr.bytes.readBigUInt64LE(24)).toBe(0x0102030405060708n);
  });

  it('ahead of an unanswered one makes the NIC ask again for both', async () => {
    const { nic } = await withSent((n) => [fetchAdd(n, 1, 0), fetchAdd(n, 2, 8)]);
    nic.response('ATOMIC_ACKNOWLEDGE', 1, { orig: 5n });
    expect(nic.take()).toMatchObject([
      { name: 'FETCH_ADD', at: 0 },
      { name: 'FETCH_ADD', at: 1 },
    ]);
    expect(wrIds(nic)).toEqual([]);
  });
});

describe('a NAK', () => {
  it.each([
    [0x61, 9, 'REM_INV_REQ_ERR'],
    [0x62, 10, 'REM_ACCESS_ERR'],
    [0x63, 11, 'REM_OP_ERR'],
    [0x64, 11, 'REM_OP_ERR'],
    [0x7f, 11, 'REM_OP_ERR'],
  ])('0x%s ends its request with status %i, after the earlier ones succeeded', async (syndrome, status, statusName) => {
    const { nic } = await withSent((n) => [send(n, 1), send(n, 2), send(n, 3)]);
    nic.ack(1, syndrome);
    expect(nic.done()).toMatchObject([
      { wrId: 1, status: 0 },
      { wrId: 2, status, statusName, vendorError: syndrome },
      { wrId: 3, status: 5 },
    ]);
    expect(await nic.state()).toBe('ERR');
    expect(nic.asyncEvents).toEqual(['QP_FATAL']);
  });

  it('about something that is acknowledged already is ignored', async () => {
    const { nic } = await withSent((n) => [send(n, 1), send(n, 2)]);
    nic.ack(0);
    nic.ack(0, 0x61);
    nic.ack(0, 0x60);
    expect(nic.take()).toEqual([]);
    expect(wrIds(nic)).toEqual([1]);
    expect(await nic.state()).toBe('RTS');
  });

  it('about something never sent is ignored', async () => {
    const { nic } = await withSent((n) => [send(n, 1)]);
    for (const syndrome of [0x60, 0x61, 0x2c]) nic.ack(5, syndrome);
    expect(wrIds(nic)).toEqual([]);
    expect(await nic.state()).toBe('RTS');
  });

  it('0x60 acknowledges what stands before it and resumes there', async () => {
    const { nic } = await withSent((n) => [send(n, 1), send(n, 2, 3 * MTU), send(n, 3)]);
    nic.ack(2, 0x60);
    expect(wrIds(nic)).toEqual([1]);
    expect(nic.take()).toMatchObject([
      { name: 'SEND_MIDDLE', at: 2 },
      { name: 'SEND_LAST', at: 3 },
      { name: 'SEND_ONLY', at: 4 },
    ]);
  });

  it('0x60 behind an unanswered READ resumes at the READ', async () => {
    const { nic } = await withSent((n) => [read(n, 1, 2 * MTU), send(n, 2)]);
    nic.ack(2, 0x60);
    expect(nic.take()).toMatchObject([
      { name: 'RDMA_READ_REQUEST', at: 0, dmaLength: 2 * MTU },
      { name: 'SEND_ONLY', at: 2 },
    ]);
  });

  it('0x60 inside a READ resumes at the first response that is missing', async () => {
    const { nic } = await withSent((n) => [read(n, 1, 4 * MTU)]);
    nic.response('RDMA_READ_RESPONSE_FIRST', 0, {}, pattern(MTU));
    nic.ack(3, 0x60);
    expect(nic.take()).toMatchObject([{ name: 'RDMA_READ_REQUEST', at: 1, dmaLength: 3 * MTU }]);
  });
});

describe('a SACK', () => {
  const SACK = { attr: { recovery: 'selective-repeat' } } as const;

  it.each([1, 2, 0x3fffff])('about PSN %i, to which nothing was sent yet, is ignored', async (beyond) => {
    // The window lets two packets out: of the third the peer can know nothing, whatever it says.
    const nic = await LoneNic.create({ attr: { ...SACK.attr, inflightPackets: 2 } });
    nic.qp.postSend(send(nic, 1, 3 * MTU));
    expect(nic.take()).toHaveLength(2);
    nic.sack(2 + beyond, Uint8Array.of(1, 0, 0, 0));
    expect(nic.done()).toEqual([]);
    expect(nic.take()).toEqual([]);
    nic.ack(1);
    expect(nic.take()).toMatchObject([{ name: 'SEND_LAST', at: 2 }]);
    nic.ack(2);
    expect(wrIds(nic)).toEqual([1]);
  });

  it('about the next PSN acknowledges all that was sent', async () => {
    const nic = await LoneNic.create(SACK);
    nic.qp.postSend(send(nic, 1), send(nic, 2));
    nic.take();
    nic.sack(2, Uint8Array.of(1, 0, 0, 0));
    expect(wrIds(nic)).toEqual([1, 2]);
  });
});

describe('an error of a request behind a local operation that has yet to complete', () => {
  it('fails the request, not the operation', async () => {
    const nic = await LoneNic.create({ attr: { rateControl: { name: 'fixed', rateBps: 1e6 } } });
    const mw = await nic.pd.allocMw(1);
    const bind = { opcode: 'BIND_MW', wrId: 2, mw, rkey: mw.nextRkey(), mr: nic.mr, offset: 0, length: 8, access: 0 };
    nic.qp.postSend(send(nic, 1), bind as SendWorkRequest, send(nic, 3));
    expect(nic.advance(5e6)).toHaveLength(2);
    nic.advance(67.2e6 - nic.nowNs); // A timeout has just had SEND 1 sent again; SEND 3 waits for the pacer.
    nic.ack(1, 0x62);
    expect(nic.done().map((wc) => [wc.wrId, wc.status])).toEqual([
      [1, 0],
      [2, 0],
      [3, 10],
    ]);
  });
});
