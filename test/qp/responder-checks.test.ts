/** The responder's check table: what each violation is answered with, and which of two violations decides. */

import { describe, expect, it } from 'vitest';
import { Access } from '../../src/verbs/access.js';
import { ack, LoneNic, MTU, nak, pattern } from '../support/lone-nic.js';

const full = pattern(MTU);
const short = pattern(100);

/** The QP is in ERR, the NAK was its last word, and what still arrives is dropped in silence. */
async function expectStopped(nic: LoneNic): Promise<void> {
  expect(await nic.state()).toBe('ERR');
  const dropped = nic.device.counters().rx_drop_qp_state;
  nic.request('SEND_ONLY', 0, { ackReq: true }, short);
  nic.request('SEND_ONLY', 9, { ackReq: true }, short);
  expect(nic.take()).toEqual([]);
  expect(nic.device.counters().rx_drop_qp_state).toBe(dropped + 2);
}

describe('PSN', () => {
  it('answers the first packet behind a gap with NAK 0x60 at the expected PSN, the others with silence', async () => {
    const nic = await LoneNic.create();
    nic.request('RDMA_WRITE_ONLY', 1, { ackReq: true }, short);
    nic.request('RDMA_WRITE_ONLY', 2, { ackReq: true }, short);
    expect(nic.take()).toMatchObject([nak(0x60, 0)]);
    nic.request('RDMA_WRITE_ONLY', 3, { ackReq: true }, short);
    expect(nic.take()).toEqual([]);
    expect(nic.device.counters()).toMatchObject({ out_of_sequence: 3, resp_nak_sequence: 1 });
  });

  it('reports the next gap again once the first is filled', async () => {
    const nic = await LoneNic.create();
    nic.request('RDMA_WRITE_ONLY', 1, {}, short);
    expect(nic.take()).toMatchObject([nak(0x60, 0)]);
    nic.request('RDMA_WRITE_ONLY', 0, { ackReq: true }, short);
    expect(nic.take()).toMatchObject([ack(0, 1)]);
    nic.request('RDMA_WRITE_ONLY', 2, {}, short);
    expect(nic.take()).toMatchObject([nak(0x60, 1)]);
  });

  it.each([0x7fffff, 0x400000])('counts %i ahead as a gap', async (distance) => {
    const nic = await LoneNic.create();
    nic.request('RDMA_WRITE_ONLY', distance, {}, short);
    expect(nic.take()).toMatchObject([nak(0x60, 0)]);
  });

  it('counts half the sequence space ahead as a duplicate', async () => {
    const nic = await LoneNic.create();
    nic.request('RDMA_WRITE_ONLY', 0x800000, { ackReq: true }, short);
    expect(nic.take()).toMatchObject([ack(-1, 0)]);
    expect(nic.device.counters()).toMatchObject({ duplicate_request: 1, out_of_sequence: 0 });
  });

  it('keeps the message in progress over a gap', async () => {
    const nic = await LoneNic.create();
    nic.request('RDMA_WRITE_FIRST', 0, { dmaLength: MTU + 100 }, full);
    nic.request('RDMA_WRITE_ONLY', 2, {}, short);
    expect(nic.take()).toMatchObject([nak(0x60, 1)]);
    nic.request('RDMA_WRITE_LAST', 1, { ackReq: true }, short);
    expect(nic.take()).toMatchObject([ack(1, 1)]);
    expect(nic.mr.bytes.subarray(0, MTU + 100)).toEqual(Buffer.concat([full, short]));
  });

  it('checks the PSN before anything else', async () => {
    const nic = await LoneNic.create();
    nic.request('SEND_MIDDLE', 1, { ackReq: true }, short); // Wrong in sequence and length as well.
    expect(nic.take()).toMatchObject([nak(0x60, 0)]);
    expect(await nic.state()).toBe('RTS');
  });
});

describe('opcode sequence', () => {
  const BEGINNINGS = [
    'SEND_FIRST',
    'SEND_ONLY',
    'RDMA_WRITE_FIRST',
    'RDMA_WRITE_ONLY',
    'RDMA_READ_REQUEST',
    'FETCH_ADD',
  ];
  const SEND_REST = ['SEND_MIDDLE', 'SEND_LAST', 'SEND_LAST_WITH_IMMEDIATE', 'SEND_LAST_WITH_INVALIDATE'];
  const WRITE_REST = ['RDMA_WRITE_MIDDLE', 'RDMA_WRITE_LAST', 'RDMA_WRITE_LAST_WITH_IMMEDIATE'];
  const payloadOf = (name: string) => (/READ|FETCH/.test(name) ? new Uint8Array(0) : full);

  it.each([...SEND_REST, ...WRITE_REST])('refuses %s outside a message', async (name) => {
    const nic = await LoneNic.create();
    nic.qp.postRecv({ sges: [nic.mr.sge()] });
    nic.request(name, 0, {}, full);
    expect(nic.take()).toMatchObject([nak(0x61, 0)]);
    await expectStopped(nic);
  });

  it.each([...BEGINNINGS, ...WRITE_REST])('refuses %s inside a SEND', async (name) => {
    const nic = await LoneNic.create();
    nic.qp.postRecv({ wrId: 1, sges: [nic.mr.sge()] });
    nic.qp.postRecv({ wrId: 2, sges: [nic.mr.sge()] });
    nic.request('SEND_FIRST', 0, {}, full);
    nic.request(name, 1, {}, payloadOf(name));
    expect(nic.take()).toMatchObject([nak(0x61, 1)]);
    // The receive in use fails with the cause, the other is flushed.
    expect(nic.received()).toMatchObject([
      { wrId: 1, status: 9 },
      { wrId: 2, status: 5 },
    ]);
    await expectStopped(nic);
  });

  it.each([...BEGINNINGS, ...SEND_REST])('refuses %s inside a WRITE', async (name) => {
    const nic = await LoneNic.create();
    nic.qp.postRecv({ wrId: 1, sges: [nic.mr.sge()] });
    nic.request('RDMA_WRITE_FIRST', 0, { dmaLength: 4 * MTU }, full);
    nic.request(name, 1, {}, payloadOf(name));
    expect(nic.take()).toMatchObject([nak(0x61, 1)]);
    expect(nic.received()).toMatchObject([{ wrId: 1, status: 5 }]);
  });

  it('checks the sequence before access and length', async () => {
    const nic = await LoneNic.create({ attr: { accessFlags: 0 } });
    nic.request('RDMA_WRITE_LAST', 0, {}, new Uint8Array(0));
    expect(nic.take()).toMatchObject([nak(0x61, 0)]);
  });
});

describe('access flags of the QP', () => {
  const CASES = [
    ['RDMA_WRITE_ONLY', Access.REMOTE_READ | Access.REMOTE_ATOMIC, short],
    ['RDMA_READ_REQUEST', Access.REMOTE_WRITE | Access.REMOTE_ATOMIC, new Uint8Array(0)],
    ['FETCH_ADD', Access.REMOTE_WRITE | Access.REMOTE_READ, new Uint8Array(0)],
    ['COMPARE_SWAP', Access.REMOTE_WRITE | Access.REMOTE_READ, new Uint8Array(0)],
  ] as const;

  it.each(CASES)('%s without its flag is an invalid request', async (name, accessFlags, payload) => {
    const nic = await LoneNic.create({ attr: { accessFlags } });
    nic.request(name, 0, {}, payload);
    expect(nic.take()).toMatchObject([nak(0x61, 0)]);
    await expectStopped(nic);
  });

  it.each(CASES)(
    '%s without its flag is refused for that even if the key is bad',
    async (name, accessFlags, payload) => {
      const nic = await LoneNic.create({ attr: { accessFlags } });
      nic.request(name, 0, { rkey: 0xdeadbeef }, payload);
      expect(nic.take()).toMatchObject([nak(0x61, 0)]);
    },
  );

  it('SEND needs none', async () => {
    const nic = await LoneNic.create({ attr: { accessFlags: 0 } });
    nic.qp.postRecv({ sges: [nic.mr.sge()] });
    nic.request('SEND_ONLY', 0, { ackReq: true }, short);
    expect(nic.take()).toMatchObject([ack(0, 1)]);
  });

  it('come before the search for a receive: a WRITE with immediate is refused, not put off', async () => {
    const nic = await LoneNic.create({ attr: { accessFlags: Access.REMOTE_READ } });
    nic.request('RDMA_WRITE_ONLY_WITH_IMMEDIATE', 0, {}, short);
    expect(nic.take()).toMatchObject([nak(0x61, 0)]);
  });
});

describe('responder resources', () => {
  it.each(['RDMA_READ_REQUEST', 'FETCH_ADD'])('%s is an invalid request when none were agreed', async (name) => {
    const nic = await LoneNic.create({ attr: { maxDestRdAtomic: 0 } });
    nic.request(name, 0, { dmaLength: 8 });
    expect(nic.take()).toMatchObject([nak(0x61, 0)]);
    await expectStopped(nic);
  });

  it('more READs at once than agreed are an invalid request, after the agreed ones are answered', async () => {
    const nic = await LoneNic.create({ attr: { maxDestRdAtomic: 2 } });
    for (let n = 0; n < 3; n++) nic.request('RDMA_READ_REQUEST', n, { dmaLength: 8 });
    expect(nic.take()).toMatchObject([
      { name: 'RDMA_READ_RESPONSE_ONLY', at: 0 },
      { name: 'RDMA_READ_RESPONSE_ONLY', at: 1 },
      nak(0x61, 2),
    ]);
  });

  it('any number of READs pass one after another', async () => {
    const nic = await LoneNic.create({ attr: { maxDestRdAtomic: 1 } });
    for (let n = 0; n < 10; n++) {
      nic.request('RDMA_READ_REQUEST', n, { dmaLength: 8 });
      expect(nic.take()).toMatchObject([{ name: 'RDMA_READ_RESPONSE_ONLY', at: n, msn: n + 1 }]);
    }
  });
});

describe('receiver not ready', () => {
  it.each(['SEND_FIRST', 'SEND_ONLY', 'SEND_ONLY_WITH_IMMEDIATE', 'RDMA_WRITE_ONLY_WITH_IMMEDIATE'])(
    '%s without a receive gets an RNR NAK with the timer of this side; the QP goes on',
    async (name) => {
      const nic = await LoneNic.create({ attr: { minRnrTimer: 17 } });
      nic.request(name, 0, {}, full);
      expect(nic.take()).toMatchObject([nak(0x20 | 17, 0)]);
      expect(await nic.state()).toBe('RTS');
      nic.qp.postRecv({ wrId: 3, sges: [nic.mr.sge()] });
      nic.request(name, 0, { ackReq: true }, full);
      expect(nic.take()).toMatchObject([{ at: 0, syndrome: 0x1f }]);
      expect(nic.device.counters().out_of_buffer).toBe(1);
    },
  );

  it('repeats the RNR NAK each time the packet comes too early', async () => {
    const nic = await LoneNic.create();
    for (let n = 0; n < 3; n++) {
      nic.request('SEND_ONLY', 0, {}, short);
      expect(nic.take()).toMatchObject([nak(0x2c, 0)]);
    }
  });

  it('keeps the context of a WRITE whose last packet finds no receive', async () => {
    const nic = await LoneNic.create();
    nic.request('RDMA_WRITE_FIRST', 0, { dmaLength: MTU + 100 }, full);
    nic.request('RDMA_WRITE_LAST_WITH_IMMEDIATE', 1, { immediate: 0xabcd }, short);
    expect(nic.take()).toMatchObject([nak(0x2c, 1)]);
    nic.qp.postRecv({ wrId: 8 });
    nic.request('RDMA_WRITE_LAST_WITH_IMMEDIATE', 1, { immediate: 0xabcd, ackReq: true }, short);
    expect(nic.take()).toMatchObject([ack(1, 1)]);
    expect(nic.received()).toMatchObject([
      { wrId: 8, status: 0, opcode: 'RECV_RDMA_WITH_IMM', byteLen: MTU + 100, immediate: 0xabcd },
    ]);
    expect(nic.mr.bytes.subarray(0, MTU + 100)).toEqual(Buffer.concat([full, short]));
  });

  it('is said of packets behind it neither again nor as a gap', async () => {
    const nic = await LoneNic.create();
    nic.request('SEND_ONLY', 0, {}, short);
    nic.request('SEND_ONLY', 1, {}, short);
    expect(nic.take()).toMatchObject([nak(0x2c, 0)]);
    nic.request('SEND_ONLY', 2, {}, short);
    expect(nic.take()).toEqual([]);
  });

  it('is followed by silence when packets behind it come after the answer', async () => {
    const nic = await LoneNic.create();
    nic.request('SEND_ONLY', 0, {}, short);
    expect(nic.take()).toMatchObject([nak(0x2c, 0)]);
    nic.request('SEND_ONLY', 1, {}, short);
    expect(nic.take()).toEqual([]);
  });

  it('comes before the length check: a SEND that is too long is put off first', async () => {
    const nic = await LoneNic.create();
    nic.request('SEND_FIRST', 0, {}, short);
    expect(nic.take()).toMatchObject([nak(0x2c, 0)]);
  });
});

describe('length', () => {
  it.each([
    ['SEND_FIRST', MTU - 1],
    ['SEND_FIRST', MTU + 4],
    ['SEND_FIRST', 0],
    ['SEND_ONLY', MTU + 1],
    ['RDMA_WRITE_ONLY', MTU + 1],
  ])('%s of %i bytes is an invalid request', async (name, size) => {
    const nic = await LoneNic.create();
    nic.qp.postRecv({ wrId: 1, sges: [nic.mr.sge()] });
    nic.request(name, 0, {}, pattern(size));
    expect(nic.take()).toMatchObject([nak(0x61, 0)]);
    expect(nic.mr.bytes.every((byte) => byte === 0)).toBe(true);
    await expectStopped(nic);
  });

  it.each([
    ['SEND_MIDDLE', MTU - 4],
    ['SEND_MIDDLE', MTU + 4],
    ['SEND_LAST', 0],
    ['SEND_LAST', MTU + 1],
  ])('%s of %i bytes in a SEND is an invalid request', async (name, size) => {
    const nic = await LoneNic.create();
    nic.qp.postRecv({ wrId: 1, sges: [nic.mr.sge()] });
    nic.request('SEND_FIRST', 0, {}, full);
    nic.request(name, 1, {}, pattern(size));
    expect(nic.take()).toMatchObject([nak(0x61, 1)]);
    expect(nic.received()).toMatchObject([{ wrId: 1, status: 9 }]);
  });

  it.each([
    ['RDMA_WRITE_FIRST', MTU, MTU - 4],
    ['RDMA_WRITE_FIRST', MTU, MTU],
    ['RDMA_WRITE_FIRST', 2 ** 31 + 1, MTU],
    ['RDMA_WRITE_ONLY', 101, 100],
    ['RDMA_WRITE_ONLY', 99, 100],
    ['RDMA_WRITE_ONLY', 0, 4],
    ['RDMA_WRITE_ONLY', 4, 0],
  ])('%s that announces %i bytes and carries %i is an invalid request', async (name, dmaLength, size) => {
    const nic = await LoneNic.create();
    nic.request(name, 0, { dmaLength }, pattern(size));
    expect(nic.take()).toMatchObject([nak(0x61, 0)]);
    expect(nic.mr.bytes.every((byte) => byte === 0)).toBe(true);
  });

  it.each([
    ['RDMA_WRITE_MIDDLE', 2 * MTU, MTU], // The announced bytes end here: this should be the LAST.
    ['RDMA_WRITE_LAST', 3 * MTU, MTU],
    ['RDMA_WRITE_LAST', MTU + 100, 99],
    ['RDMA_WRITE_LAST', MTU + 100, 101],
    ['RDMA_WRITE_LAST', MTU + 100, 0],
  ])('%s that does not fit a WRITE of %i bytes (%i carried) is an invalid request', async (name, dmaLength, size) => {
    const nic = await LoneNic.create();
    nic.request('RDMA_WRITE_FIRST', 0, { dmaLength }, full);
    nic.request(name, 1, {}, pattern(size, 2));
    expect(nic.take()).toMatchObject([nak(0x61, 1)]);
    // What the first packet wrote stays; the refused one wrote nothing.
    expect(nic.mr.bytes.subarray(0, MTU)).toEqual(full);
    expect(nic.mr.bytes.subarray(MTU).every((byte) => byte === 0)).toBe(true);
  });

  it('a READ of more than 2^31 bytes is an invalid request', async () => {
    const nic = await LoneNic.create();
    nic.request('RDMA_READ_REQUEST', 0, { dmaLength: 2 ** 31 + 1 });
    expect(nic.take()).toMatchObject([nak(0x61, 0)]);
  });

  it('is checked before the key', async () => {
    const nic = await LoneNic.create();
    nic.request('RDMA_WRITE_ONLY', 0, { rkey: 0xdeadbeef, dmaLength: 99 }, short);
    expect(nic.take()).toMatchObject([nak(0x61, 0)]);
  });
});

describe('remote key', () => {
  const REQUESTS = [
    ['RDMA_WRITE_ONLY', short, 100],
    ['RDMA_READ_REQUEST', new Uint8Array(0), 100],
    ['FETCH_ADD', new Uint8Array(0), 8],
  ] as const;

  it.each(REQUESTS)('%s with an unknown key is a remote access error', async (name, payload, dmaLength) => {
    const nic = await LoneNic.create();
    nic.request(name, 0, { rkey: nic.mr.rkey ^ 0x100, dmaLength }, payload);
    expect(nic.take()).toMatchObject([nak(0x62, 0)]);
    await expectStopped(nic);
  });

  it.each(REQUESTS)('%s past the end of the region is a remote access error', async (name, payload, dmaLength) => {
    const nic = await LoneNic.create();
    const end = nic.mr.addr + BigInt(nic.mr.length);
    const va = name === 'FETCH_ADD' ? end : end - BigInt(dmaLength) + 1n;
    nic.request(name, 0, { va, dmaLength }, payload);
    expect(nic.take()).toMatchObject([nak(0x62, 0)]);
    expect(nic.mr.bytes.every((byte) => byte === 0)).toBe(true);
  });

  it.each([
    ['RDMA_WRITE_ONLY', short, 100, Access.REMOTE_READ | Access.REMOTE_ATOMIC | Access.LOCAL_WRITE],
    ['RDMA_READ_REQUEST', new Uint8Array(0), 100, Access.REMOTE_WRITE | Access.REMOTE_ATOMIC | Access.LOCAL_WRITE],
    ['COMPARE_SWAP', new Uint8Array(0), 8, Access.REMOTE_WRITE | Access.REMOTE_READ | Access.LOCAL_WRITE],
  ] as const)(
    '%s without that access of the region is a remote access error',
    async (name, payload, dmaLength, mrAccess) => {
      const nic = await LoneNic.create({ mrAccess });
      nic.request(name, 0, { dmaLength }, payload);
      expect(nic.take()).toMatchObject([nak(0x62, 0)]);
    },
  );

  it('of another protection domain is a remote access error', async () => {
    const nic = await LoneNic.create();
    const foreign = await (await nic.device.createPd()).regMr(4096, Access.REMOTE_ALL);
    nic.request('RDMA_WRITE_ONLY', 0, { va: foreign.addr, rkey: foreign.rkey }, short);
    expect(nic.take()).toMatchObject([nak(0x62, 0)]);
    expect(foreign.bytes.every((byte) => byte === 0)).toBe(true);
  });

  it('that is deregistered in the middle of a WRITE stops it there', async () => {
    const nic = await LoneNic.create();
    const region = await nic.pd.regMr(4096, Access.REMOTE_ALL);
    nic.request('RDMA_WRITE_FIRST', 0, { va: region.addr, rkey: region.rkey, dmaLength: 2 * MTU }, full);
    await region.close();
    nic.request('RDMA_WRITE_LAST', 1, {}, full);
    expect(nic.take()).toMatchObject([nak(0x62, 1)]);
    expect(region.bytes.subarray(MTU).every((byte) => byte === 0)).toBe(true);
  });
});

describe('the receive work request', () => {
  it('that is too small: NAK 0x61 and LOC_LEN_ERR', async () => {
    const nic = await LoneNic.create();
    nic.qp.postRecv({ wrId: 4, sges: [nic.mr.sge(0, 99)] });
    nic.request('SEND_ONLY', 0, { ackReq: true }, short);
    expect(nic.take()).toMatchObject([nak(0x61, 0)]);
    expect(nic.received()).toMatchObject([{ wrId: 4, status: 1, statusName: 'LOC_LEN_ERR' }]);
    expect(nic.mr.bytes.every((byte) => byte === 0)).toBe(true);
    await expectStopped(nic);
  });

  it('that becomes too small in a later packet fails there', async () => {
    const nic = await LoneNic.create();
    nic.qp.postRecv({ wrId: 4, sges: [nic.mr.sge(0, MTU + 50)] });
    nic.request('SEND_FIRST', 0, {}, full);
    nic.request('SEND_LAST', 1, {}, short);
    expect(nic.take()).toMatchObject([nak(0x61, 1)]);
    expect(nic.received()).toMatchObject([{ wrId: 4, status: 1 }]);
  });

  it('that fits exactly is filled', async () => {
    const nic = await LoneNic.create();
    nic.qp.postRecv({ wrId: 4, sges: [nic.mr.sge(0, 60), nic.mr.sge(1000, 0), nic.mr.sge(200, 40)] });
    nic.request('SEND_ONLY', 0, { ackReq: true }, short);
    expect(nic.take()).toMatchObject([ack(0, 1)]);
    expect(nic.received()).toMatchObject([{ wrId: 4, status: 0, byteLen: 100 }]);
    expect(nic.mr.bytes.subarray(0, 60)).toEqual(short.subarray(0, 60));
    expect(nic.mr.bytes.subarray(200, 240)).toEqual(short.subarray(60));
  });

  it.each([
    ['an unknown lkey', (nic: LoneNic) => ({ addr: nic.mr.addr, length: 200, lkey: nic.mr.lkey ^ 1 })],
    ['a range outside its region', (nic: LoneNic) => ({ addr: nic.mr.addr - 1n, length: 200, lkey: nic.mr.lkey })],
  ])('with %s: NAK 0x63 and LOC_PROT_ERR', async (_, sge) => {
    const nic = await LoneNic.create();
    nic.qp.postRecv({ wrId: 4, sges: [sge(nic)] });
    nic.request('SEND_ONLY', 0, {}, short);
    expect(nic.take()).toMatchObject([nak(0x63, 0)]);
    expect(nic.received()).toMatchObject([{ wrId: 4, status: 4, statusName: 'LOC_PROT_ERR' }]);
    await expectStopped(nic);
  });

  it('in memory that may not be written: NAK 0x63', async () => {
    const nic = await LoneNic.create({ mrAccess: 0 });
    nic.qp.postRecv({ wrId: 4, sges: [nic.mr.sge()] });
    nic.request('SEND_ONLY', 0, {}, short);
    expect(nic.take()).toMatchObject([nak(0x63, 0)]);
  });
});

describe('what does not reach the responder', () => {
  const writeOnly = (nic: LoneNic, fields = {}) =>
    nic.request('RDMA_WRITE_ONLY', 0, { ackReq: true, ...fields }, short);

  it('a packet with a flipped bit is dropped in silence, wherever the bit stands', async () => {
    const nic = await LoneNic.create();
    const packet = nic.craftRequest('RDMA_WRITE_ONLY', 0, { ackReq: true }, short);
    for (let bit = 0; bit < 8 * (packet.length + 4); bit++) {
      if (bit >= 32 && bit < 40) continue; // BTH byte 4 is not covered.
      nic.deliver(packet, { bit });
    }
    expect(nic.take()).toEqual([]);
    expect(nic.device.counters().rx_accepted).toBe(0);
    nic.deliver(packet);
    expect(nic.take()).toMatchObject([ack(0, 1)]);
  });

  it.each([
    ['rx_drop_no_qp', { destQpn: 0x123456 }],
    ['rx_drop_pkey', { pkey: 0x8001 }],
  ])('%s', async (counter, fields) => {
    const nic = await LoneNic.create();
    writeOnly(nic, fields);
    expect(nic.take()).toEqual([]);
    expect(nic.device.counters()).toMatchObject({ [counter]: 1, rx_accepted: 0 });
  });

  it('limited members of the partition are heard', async () => {
    const nic = await LoneNic.create();
    writeOnly(nic, { pkey: 0x7fff });
    expect(nic.take()).toMatchObject([ack(0, 1)]);
  });

  it('congestion marks and the migration bit change nothing', async () => {
    const nic = await LoneNic.create();
    writeOnly(nic, { fecn: true, becn: true, migReq: true, resv6: 0x3f, resv7: 0x7f });
    expect(nic.take()).toMatchObject([ack(0, 1)]);
  });
});
