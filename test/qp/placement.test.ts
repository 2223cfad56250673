/** FLUSH and ATOMIC WRITE (IBTA vol. 1 release 1.5, annex A19), in both roles. */

import { describe, expect, it } from 'vitest';
import { recoveryNames } from '../../src/retransmit/recovery-schemes.js';
import { Access } from '../../src/verbs/access.js';
import type { SendWorkRequest } from '../../src/verbs/send-work-request.js';
import { type CraftedFields, LoneNic, type LoneNicOptions, nak, pattern } from '../support/lone-nic.js';
import { createPair } from '../support/pair.js';

const GLOBAL = 0x01;
const PERSISTENT = 0x02;
const REGION = 0x10;
const RIGHTS = Access.REMOTE_ALL | Access.FLUSH_GLOBAL;
const word = pattern(8, 3);
const other = pattern(8, 9);
const done = (at: number, msn: number) => ({
  name: 'RDMA_READ_RESPONSE_ONLY',
  at,
  msn,
  syndrome: 0x1f,
  payload: Buffer.alloc(0),
});

/** Its queue pair and its region allow FLUSH. */
function createNic(options: LoneNicOptions = {}): Promise<LoneNic> {
  const { attr, mrAccess = RIGHTS } = options;
  return LoneNic.create({ ...options, mrAccess, attr: { accessFlags: RIGHTS, ...attr } });
}

describe('a responder', () => {
  it('places the bytes of an ATOMIC WRITE and answers with a READ response without data', async () => {
    const nic = await createNic();
    nic.request('ATOMIC_WRITE', 0, { va: nic.mr.addr + 16n }, word);
    expect(nic.take()).toMatchObject([done(0, 1)]);
    expect(nic.mr.bytes.subarray(16, 24)).toEqual(word);
    expect(nic.mr.bytes.subarray(24, 32)).toEqual(Buffer.alloc(8));
  });

  it('answers a FLUSH after the WRITEs before it, for a range and for the region', async () => {
    const nic = await createNic();
    nic.request('RDMA_WRITE_ONLY', 0, {}, word);
    nic.request('FLUSH', 1, { feth: GLOBAL, dmaLength: 8 });
    nic.request('FLUSH', 2, { feth: GLOBAL | REGION, va: 0n, dmaLength: 0 });
    nic.request('FETCH_ADD', 3, { swapAdd: 1n });
    expect(nic.take()).toMatchObject([done(1, 2), done(2, 3), { name: 'ATOMIC_ACKNOWLEDGE', at: 3, msn: 4 }]);
  });

  it.each([
    ['ATOMIC_WRITE', {}, word],
    ['FLUSH', { feth: GLOBAL }, undefined],
  ] as const)('%s: a repeated one is answered again and not executed again', async (name, fields, payload) => {
    const nic = await createNic();
    nic.request(name, 0, fields, payload);
    nic.request('RDMA_WRITE_ONLY', 1, {}, other);
    expect(nic.take()).toMatchObject([done(0, 1)]);
    nic.request(name, 0, fields, payload);
    expect(nic.take()).toMatchObject([{ name: 'RDMA_READ_RESPONSE_ONLY', at: 0, payload: Buffer.alloc(0) }]);
    expect(nic.mr.bytes.subarray(0, 8)).toEqual(other);
    expect(nic.device.counters().duplicate_request).toBe(1);
  });

  it.each([
    ['ATOMIC_WRITE', {}, word],
    ['FLUSH', { feth: GLOBAL }, undefined],
  ] as const)('%s: one whose record was recycled is dropped in silence', async (name, fields, payload) => {
    const nic = await createNic();
    nic.request(name, 0, fields, payload);
    for (let n = 1; n <= 4; n++) nic.request('FETCH_ADD', n, { va: nic.mr.addr + 64n, swapAdd: 1n });
    nic.take();
    nic.mr.bytes.fill(0, 0, 8);
    nic.request(name, 0, fields, payload);
    expect(nic.take()).toEqual([]);
    expect(nic.mr.bytes.subarray(0, 8)).toEqual(Buffer.alloc(8));
  });

  it.each([
    ['an ATOMIC WRITE to an unaligned address', 'ATOMIC_WRITE', { va: 4n }, word],
    ['an ATOMIC WRITE of 4 bytes', 'ATOMIC_WRITE', {}, word.subarray(4)],
    ['an ATOMIC WRITE of 16 bytes', 'ATOMIC_WRITE', {}, pattern(16)],
    ['an ATOMIC WRITE whose RETH says 16 bytes', 'ATOMIC_WRITE', { dmaLength: 16 }, word],
    ['a FLUSH without a placement type', 'FLUSH', { feth: 0 }, undefined],
    ['a FLUSH with a reserved placement type', 'FLUSH', { feth: GLOBAL | 4 }, undefined],
    ['a FLUSH with a reserved level', 'FLUSH', { feth: GLOBAL | 0x20 }, undefined],
    ['a FLUSH of more than 2^31 bytes', 'FLUSH', { feth: GLOBAL, dmaLength: 0x80000001 }, undefined],
    ['a persistent FLUSH that the queue pair does not allow', 'FLUSH', { feth: PERSISTENT }, undefined],
    ['a FLUSH of which the queue pair allows one type', 'FLUSH', { feth: GLOBAL | PERSISTENT }, undefined],
  ])('refuses %s as an invalid request', async (_, name, fields: CraftedFields, payload) => {
    const nic = await createNic();
    nic.request(name, 0, { ...fields, va: nic.mr.addr + (fields.va ?? 0n) }, payload);
    expect(nic.take()).toMatchObject([nak(0x61, 0)]);
    expect(nic.mr.bytes.every((byte) => byte === 0)).toBe(true);
    expect(await nic.state()).toBe('ERR');
  });

  it.each([
    ['ATOMIC_WRITE', { accessFlags: RIGHTS & ~Access.REMOTE_WRITE }, {}, word],
    ['FLUSH', { accessFlags: RIGHTS & ~Access.FLUSH_GLOBAL }, { feth: GLOBAL }, undefined],
    ['ATOMIC_WRITE', { maxDestRdAtomic: 0 }, {}, word],
    ['FLUSH', { maxDestRdAtomic: 0 }, { feth: GLOBAL }, undefined],
  ] as const)('refuses %s where the queue pair has %o', async (name, attr, fields, payload) => {
    const nic = await createNic({ attr });
    nic.request(name, 0, { ...fields, rkey: 0xdeadbeef }, payload);
    expect(nic.take()).toMatchObject([nak(0x61, 0)]);
  });

  it.each([
    ['ATOMIC_WRITE', { rkey: 0xdeadbeef }, word],
    ['ATOMIC_WRITE', { va: 65_536n }, word],
    ['FLUSH', { feth: GLOBAL, rkey: 0xdeadbeef }, undefined],
    ['FLUSH', { feth: GLOBAL | REGION, rkey: 0xdeadbeef }, undefined],
    ['FLUSH', { feth: GLOBAL, va: 65_535n, dmaLength: 2 }, undefined],
  ] as const)('answers %s of %o with a remote access error', async (name, fields, payload) => {
    const nic = await createNic();
    const va = nic.mr.addr + ('va' in fields ? fields.va : 0n);
    nic.request(name, 0, { ...fields, va }, payload);
    expect(nic.take()).toMatchObject([nak(0x62, 0)]);
  });

  it.each([
    ['ATOMIC_WRITE', RIGHTS & ~Access.REMOTE_WRITE, {}, word],
    ['FLUSH', RIGHTS & ~Access.FLUSH_GLOBAL, { feth: GLOBAL }, undefined],
    ['FLUSH', RIGHTS, { feth: PERSISTENT }, undefined],
  ] as const)('%s: a region with access %i does not allow it', async (name, mrAccess, fields, payload) => {
    const accessFlags = RIGHTS | Access.FLUSH_PERSISTENT;
    const nic = await createNic({ mrAccess, attr: { accessFlags } });
    nic.request(name, 0, fields, payload);
    expect(nic.take()).toMatchObject([nak(0x62, 0)]);
  });

  it('refuses one more than was agreed, after the agreed ones are answered', async () => {
    const nic = await createNic({ attr: { maxDestRdAtomic: 2 } });
    nic.request('FLUSH', 0, { feth: GLOBAL });
    nic.request('ATOMIC_WRITE', 1, {}, word);
    nic.request('FLUSH', 2, { feth: GLOBAL });
    expect(nic.take()).toMatchObject([done(0, 1), done(1, 2), nak(0x61, 2)]);
  });

  it.each(['ATOMIC_WRITE', 'FLUSH'])('refuses %s inside a message', async (name) => {
    const nic = await createNic();
    nic.request('RDMA_WRITE_FIRST', 0, { dmaLength: 1000 }, pattern(256));
    nic.request(name, 1, { feth: GLOBAL }, name === 'FLUSH' ? undefined : word);
    expect(nic.take()).toMatchObject([nak(0x61, 1)]);
  });

  it('registers no memory as persistent', async () => {
    const nic = await createNic();
    const registered = nic.pd.regMr(8, Access.FLUSH_PERSISTENT);
    await expect(registered).rejects.toMatchObject({ code: 'ERR_ROCE_UNSUPPORTED' });
  });
});

describe('a requester', () => {
  const REMOTE = { remoteAddr: 0x1_0000_0010n, rkey: 7 };
  const flush = { opcode: 'FLUSH', placement: 'GLOBAL', length: 100, ...REMOTE } as const;
  const atomicWrite = { opcode: 'ATOMIC_WRITE', inline: word, ...REMOTE } as const;

  it('sends a FLUSH and an ATOMIC WRITE as one packet each, which asks for an answer', async () => {
    const nic = await LoneNic.create({ qp: { maxInlineBytes: 64 } });
    nic.mr.bytes.set(other);
    nic.qp.postSend({ ...flush, level: 'REGION', placement: 'PERSISTENT' });
    nic.qp.postSend(atomicWrite);
    nic.qp.postSend({ opcode: 'ATOMIC_WRITE', sges: [nic.mr.sge(0, 4), nic.mr.sge(4, 4)], ...REMOTE });
    const common = { ackReq: true, va: 0x1_0000_0010n, rkey: 7 };
    expect(nic.take()).toMatchObject([
      { name: 'FLUSH', at: 0, ...common, feth: PERSISTENT | REGION, dmaLength: 100, payload: Buffer.alloc(0) },
      { name: 'ATOMIC_WRITE', at: 1, ...common, dmaLength: 8, payload: word },
      { name: 'ATOMIC_WRITE', at: 2, ...common, dmaLength: 8, payload: other },
    ]);
  });

  it.each([
    [flush, 'FLUSH', 100],
    [atomicWrite, 'ATOMIC_WRITE', 8],
  ] as const)('completes %o by a READ response, not by an ACK', async (request, opcode, byteLen) => {
    const nic = await LoneNic.create({ qp: { maxInlineBytes: 64 } });
    nic.qp.postSend({ ...request, wrId: 5 });
    nic.take();
    nic.ack(0);
    expect(nic.done()).toEqual([]);
    expect(nic.take()).toMatchObject([{ name: opcode, at: 0 }]);
    nic.response('RDMA_READ_RESPONSE_ONLY', 0);
    expect(nic.done()).toMatchObject([{ wrId: 5, status: 0, opcode, byteLen }]);
  });

  it.each([
    ['a READ response with data', 'RDMA_READ_RESPONSE_ONLY', word],
    ['an atomic answer', 'ATOMIC_ACKNOWLEDGE', undefined],
  ])('takes %s for a bad response', async (_, name, payload) => {
    const nic = await LoneNic.create();
    nic.qp.postSend({ ...flush, wrId: 1 });
    nic.take();
    nic.response(name, 0, {}, payload);
    expect(nic.done()).toMatchObject([{ wrId: 1, status: 7 }]);
  });

  it('counts it among the READs and atomics that the peer takes, and a fence waits for it', async () => {
    const nic = await LoneNic.create({ attr: { maxRdAtomic: 1 }, qp: { maxInlineBytes: 64 } });
    nic.qp.postSend(flush, atomicWrite, { opcode: 'SEND', fence: true });
    expect(nic.take()).toMatchObject([{ name: 'FLUSH' }]);
    nic.response('RDMA_READ_RESPONSE_ONLY', 0);
    expect(nic.take()).toMatchObject([{ name: 'ATOMIC_WRITE' }]);
    nic.response('RDMA_READ_RESPONSE_ONLY', 1);
    expect(nic.take()).toMatchObject([{ name: 'SEND_ONLY' }]);
  });

  it('repeats the same packet after a timeout', async () => {
    const nic = await LoneNic.create({ qp: { maxInlineBytes: 64 } });
    nic.qp.postSend(atomicWrite);
    const [first] = nic.take();
    const [again] = nic.advance(400_000_000);
    expect(again).toMatchObject({ name: 'ATOMIC_WRITE', at: 0, payload: first.payload, va: first.va });
  });

  it.each([0x61, 0x62])('reports NAK 0x%s', async (syndrome) => {
    const nic = await LoneNic.create();
    nic.qp.postSend({ ...flush, wrId: 1 });
    nic.take();
    nic.ack(0, syndrome);
    expect(nic.done()).toMatchObject([{ wrId: 1, status: syndrome === 0x61 ? 9 : 10 }]);
  });

  it.each([0, 4, 16])('an ATOMIC WRITE of %i bytes is a local length error', async (size) => {
    const nic = await LoneNic.create();
    nic.qp.postSend({ opcode: 'ATOMIC_WRITE', wrId: 1, sges: [nic.mr.sge(0, size)], ...REMOTE });
    expect(nic.take()).toEqual([]);
    expect(nic.done()).toMatchObject([{ wrId: 1, status: 1 }]);
  });

  it.each(['FLUSH', 'ATOMIC_WRITE'])('%s where no READs were agreed is a local operation error', async (opcode) => {
    const nic = await LoneNic.create({ attr: { maxRdAtomic: 0 }, qp: { maxInlineBytes: 64 } });
    nic.qp.postSend({ ...(opcode === 'FLUSH' ? flush : atomicWrite), wrId: 1 });
    expect(nic.done()).toMatchObject([{ wrId: 1, status: 2 }]);
  });

  it.each([
    ['placement', { ...flush, placement: 'NEAR' }, 'ERR_ROCE_UNKNOWN_NAME'],
    ['placement', { ...flush, placement: undefined }, 'ERR_ROCE_UNKNOWN_NAME'],
    ['level', { ...flush, level: 'PD' }, 'ERR_ROCE_UNKNOWN_NAME'],
    ['length', { ...flush, length: -1 }, 'ERR_ROCE_OUT_OF_RANGE'],
    ['length', { ...flush, length: Number.NaN }, 'ERR_ROCE_OUT_OF_RANGE'],
    ['length', { ...flush, length: 2 ** 31 + 1 }, 'ERR_ROCE_OUT_OF_RANGE'],
    ['inline', { ...flush, inline: word }, 'ERR_ROCE_CONFLICT'],
  ])('refuses a wrong %s when it is posted: %o', async (_, request, code) => {
    const nic = await LoneNic.create();
    expect(() => nic.qp.postSend(request as SendWorkRequest)).toThrow(expect.objectContaining({ code }));
    expect(nic.take()).toEqual([]);
  });
});

describe.each(recoveryNames())('%s', (recovery) => {
  it('executes each ATOMIC WRITE once and in order, with FLUSH, under loss', async () => {
    const faults = recovery === 'go-back-0' ? 'random=0.05' : 'random=0.05;duplicate=0.05;reorder=0.05,3';
    const attr = { accessFlags: RIGHTS };
    const pair = await createPair({ recovery, faults, attrA: attr, attrB: attr, memoryBytes: 4096 });
    const { a, b } = pair;
    const region = await b.pd.regMr(64, RIGHTS);
    const target = { remoteAddr: region.addr, rkey: region.rkey };
    const COUNT = 60;
    for (let n = 1; n <= COUNT; n++) {
      a.mr.bytes.writeBigUInt64LE(BigInt(n), 8 * n);
      a.qp.postSend({ opcode: 'ATOMIC_WRITE', wrId: n, sges: [a.mr.sge(8 * n, 8)], ...target });
      a.qp.postSend({ opcode: 'FLUSH', placement: 'GLOBAL', length: 8, wrId: n, ...target });
      expect(pair.completions(a.cq, 2)).toMatchObject([
        { wrId: n, status: 0, opcode: 'ATOMIC_WRITE' },
        { wrId: n, status: 0, opcode: 'FLUSH' },
      ]);
      expect(region.bytes.readBigUInt64LE(0)).toBe(BigInt(n));
    }
  });
});
