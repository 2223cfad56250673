/** The packets a work request becomes: opcodes, headers, flags, segmentation, local buffers. */

import { describe, expect, it } from 'vitest';
import type { SendWorkRequest } from '../../src/verbs/send-work-request.js';
import { LoneNic, MTU, pattern } from '../support/lone-nic.js';

const REMOTE = { remoteAddr: 0x7f00_1122_3344n, rkey: 0x1a2b };

async function posted(make: (nic: LoneNic) => SendWorkRequest) {
  const nic = await LoneNic.create();
  pattern(8192).copy(nic.mr.bytes);
  nic.qp.postSend(make(nic));
  return { nic, packets: nic.take() };
}

describe('segmentation', () => {
  it.each([
    [0, ['ONLY']],
    [1, ['ONLY']],
    [MTU, ['ONLY']],
    [MTU + 1, ['FIRST', 'LAST']],
    [2 * MTU, ['FIRST', 'LAST']],
    [3 * MTU - 1, ['FIRST', 'MIDDLE', 'LAST']],
  ])('a SEND of %i bytes becomes %j', async (size, places) => {
    const { nic, packets } = await posted(({ mr }) => ({ opcode: 'SEND', sges: [mr.sge(3, size)] }));
    expect(packets.map((packet) => [packet.name, packet.at])).toEqual(places.map((place, k) => [`SEND_${place}`, k]));
    expect(Buffer.concat(packets.map((packet) => packet.payload))).toEqual(nic.mr.bytes.subarray(3, 3 + size));
    expect(packets.slice(0, -1).every((packet) => packet.payload.length === MTU)).toBe(true);
  });

  it.each([0, 1, MTU, 2 * MTU + 5])(
    'a WRITE of %i bytes says its whole length once, in its first packet',
    async (size) => {
      const { packets } = await posted(({ mr }) => ({ opcode: 'RDMA_WRITE', sges: [mr.sge(0, size)], ...REMOTE }));
      expect(packets[0]).toMatchObject({ va: REMOTE.remoteAddr, rkey: REMOTE.rkey, dmaLength: size });
      expect(packets.at(-1)).toMatchObject({ ackReq: true, at: packets.length - 1 });
    },
  );

  it.each([
    [0, 1],
    [1, 1],
    [MTU, 1],
    [MTU + 1, 2],
    [5 * MTU, 5],
  ])('a READ of %i bytes is one request and takes %i PSNs', async (size, psns) => {
    const { nic, packets } = await posted(({ mr }) => ({ opcode: 'RDMA_READ', sges: [mr.sge(0, size)], ...REMOTE }));
    expect(packets).toMatchObject([
      { name: 'RDMA_READ_REQUEST', at: 0, dmaLength: size, va: REMOTE.remoteAddr, ackReq: true },
    ]);
    nic.qp.postSend({ opcode: 'SEND' });
    expect(nic.take()).toMatchObject([{ name: 'SEND_ONLY', at: psns }]);
  });

  it('more than half of the comparable sequence space in one message is refused before anything is sent', async () => {
    // 2^22 packets of 256 bytes are 1 GiB: the list names it without anybody having the memory.
    const nic = await LoneNic.create();
    const sge = { addr: nic.mr.addr, length: 2 ** 31, lkey: nic.mr.lkey };
    nic.qp.postSend({ opcode: 'SEND', wrId: 1, sges: [sge] });
    expect(nic.take()).toEqual([]);
    expect(nic.done()).toMatchObject([{ wrId: 1, status: 4 }]); // The region is smaller, which is noticed first.
  });
});

describe('headers', () => {
  it.each([
    ['SEND_WITH_IMM', 100, 'SEND_ONLY_WITH_IMMEDIATE'],
    ['SEND_WITH_IMM', MTU + 1, 'SEND_LAST_WITH_IMMEDIATE'],
    ['RDMA_WRITE_WITH_IMM', 100, 'RDMA_WRITE_ONLY_WITH_IMMEDIATE'],
    ['RDMA_WRITE_WITH_IMM', MTU + 1, 'RDMA_WRITE_LAST_WITH_IMMEDIATE'],
  ] as const)('%s of %i bytes ends with %s', async (opcode, size, name) => {
    const { packets } = await posted(({ mr }) => ({
      opcode,
      immediate: 0xfedcba98,
      sges: [mr.sge(0, size)],
      ...REMOTE,
    }));
    expect(packets.at(-1)).toMatchObject({ name, immediate: 0xfedcba98 });
  });

  it.each([
    [100, 'SEND_ONLY_WITH_INVALIDATE'],
    [MTU + 1, 'SEND_LAST_WITH_INVALIDATE'],
  ])('SEND_WITH_INV of %i bytes ends with %s', async (size, name) => {
    const { packets } = await posted(({ mr }) => ({
      opcode: 'SEND_WITH_INV',
      invalidateRkey: 0x12345678,
      sges: [mr.sge(0, size)],
    }));
    expect(packets.at(-1)).toMatchObject({ name, invalidateRkey: 0x12345678 });
  });

  it('the solicited bit stands on the last packet of a SEND only', async () => {
    const { packets } = await posted(({ mr }) => ({ opcode: 'SEND', solicited: true, sges: [mr.sge(0, 3 * MTU)] }));
    expect(packets.map((packet) => packet.solicited)).toEqual([false, false, true]);
  });

  it('never on a plain WRITE, but on a WRITE with immediate', async () => {
    const { nic, packets } = await posted(({ mr }) => ({
      opcode: 'RDMA_WRITE',
      solicited: true,
      sges: [mr.sge(0, 8)],
      ...REMOTE,
    }));
    expect(packets).toMatchObject([{ solicited: false }]);
    nic.qp.postSend({ opcode: 'RDMA_WRITE_WITH_IMM', immediate: 1, solicited: true, ...REMOTE });
    expect(nic.take()).toMatchObject([{ solicited: true }]);
  });

  it('the last packet of every message asks for an acknowledgement, and long ones in between', async () => {
    const { packets } = await posted(({ mr }) => ({ opcode: 'SEND', sges: [mr.sge(0, 64 * MTU)] }));
    const asked = packets.flatMap((packet, k) => (packet.ackReq ? [k] : []));
    expect(asked.at(-1)).toBe(63);
    const gaps = asked.map((k, n) => k - (asked[n - 1] ?? -1));
    expect(Math.max(...gaps)).toBeLessThanOrEqual(64);
  });

  it('the address of a partial READ carries over into the upper half', async () => {
    const nic = await LoneNic.create();
    const remoteAddr = 0x1_ffff_ff80n;
    nic.qp.postSend({ opcode: 'RDMA_READ', sges: [nic.mr.sge(0, 2 * MTU)], remoteAddr, rkey: 1 });
    nic.take();
    nic.response('RDMA_READ_RESPONSE_FIRST', 0, {}, pattern(MTU));
    expect(nic.advance(80e6)).toMatchObject([{ name: 'RDMA_READ_REQUEST', at: 1, va: 0x2_0000_0080n, dmaLength: MTU }]);
  });
});

describe('local buffers', () => {
  it('are gathered in order, zero-length elements are not looked at', async () => {
    const { nic, packets } = await posted(({ mr }) => ({
      opcode: 'SEND',
      sges: [mr.sge(1000, 200), { addr: 0n, length: 0, lkey: 0xbad }, mr.sge(10, 100), mr.sge(50, 7)],
    }));
    const { bytes } = nic.mr;
    const message = Buffer.concat([bytes.subarray(1000, 1200), bytes.subarray(10, 110), bytes.subarray(50, 57)]);
    expect(Buffer.concat(packets.map((packet) => packet.payload))).toEqual(message);
  });

  it('READ data is scattered in order', async () => {
    const nic = await LoneNic.create();
    const data = pattern(MTU + 44, 3);
    nic.qp.postSend({ opcode: 'RDMA_READ', sges: [nic.mr.sge(2000, 250), nic.mr.sge(0, 50)], ...REMOTE });
    nic.take();
    nic.response('RDMA_READ_RESPONSE_FIRST', 0, {}, data.subarray(0, MTU));
    nic.response('RDMA_READ_RESPONSE_LAST', 1, {}, data.subarray(MTU));
    expect(nic.done()).toMatchObject([{ status: 0, opcode: 'RDMA_READ', byteLen: 300 }]);
    expect(Buffer.concat([nic.mr.bytes.subarray(2000, 2250), nic.mr.bytes.subarray(0, 50)])).toEqual(data);
  });

  it('bug 23: inline data is taken when it is posted; its buffer is free at once', async () => {
    const nic = await LoneNic.create();
    const scratch = pattern(64);
    const wanted = Buffer.from(scratch);
    nic.qp.postSend({ opcode: 'SEND', inline: scratch });
    scratch.fill(0xff);
    nic.qp.postSend({ opcode: 'SEND', inline: scratch.subarray(0, 10) });
    scratch.fill(0x11);
    const [first, second] = nic.take();
    expect(first.payload).toEqual(wanted);
    expect(second.payload).toEqual(Buffer.alloc(10, 0xff));
  });

  it('bug 23: inline data is sent again unchanged', async () => {
    const nic = await LoneNic.create();
    const scratch = pattern(40);
    nic.qp.postSend({ opcode: 'RDMA_WRITE', inline: scratch, ...REMOTE });
    const [first] = nic.take();
    scratch.fill(0);
    expect(nic.advance(80e6)).toMatchObject([{ payload: first.payload }]);
  });

  it('bug 15: the ICRC is that of the bytes sent, even when the buffer changes between sending and sending again', async () => {
    // `LoneNic` checks the ICRC of every packet: computing it over the user's memory instead of the copy would show here.
    const nic = await LoneNic.create();
    nic.qp.postSend({ opcode: 'SEND', sges: [nic.mr.sge(0, 100)] });
    nic.take();
    nic.mr.bytes.fill(0x55);
    expect(nic.advance(80e6)).toMatchObject([{ payload: Buffer.alloc(100, 0x55) }]);
  });
});

describe('work requests that cannot be sent', () => {
  it('bug 16: an opcode nobody knows completes with LOC_QP_OP_ERR and flushes what follows', async () => {
    // Without a completion the application would wait for ever.
    const nic = await LoneNic.create();
    nic.qp.postSend({ opcode: 'SEND', wrId: 1 }, { opcode: 'TELEPORT', wrId: 2 } as unknown as SendWorkRequest, {
      opcode: 'SEND',
      wrId: 3,
    });
    expect(nic.take()).toMatchObject([{ name: 'SEND_ONLY', at: 0 }]);
    expect(nic.done()).toEqual([]); // In order: the first is not acknowledged yet.
    nic.ack(0);
    expect(nic.done()).toMatchObject([
      { wrId: 1, status: 0 },
      { wrId: 2, status: 2, statusName: 'LOC_QP_OP_ERR' },
      { wrId: 3, status: 5 },
    ]);
    expect(await nic.state()).toBe('ERR');
  });

  it.each(['SEND', 'RDMA_WRITE', 'RDMA_READ'] as const)(
    'bug 17: %s with a bad lkey is a local protection error, nothing is sent',
    async (opcode) => {
      // READ is the one that used to report success: the fault shows only when data comes back, unless it is looked for before.
      const nic = await LoneNic.create();
      nic.qp.postSend({ opcode, wrId: 1, sges: [{ addr: nic.mr.addr, length: 8, lkey: nic.mr.lkey ^ 1 }], ...REMOTE });
      expect(nic.take()).toEqual([]);
      expect(nic.done()).toMatchObject([{ wrId: 1, status: 4, statusName: 'LOC_PROT_ERR' }]);
    },
  );

  it('bug 17: a READ whose buffer goes away before the data comes is a local protection error', async () => {
    const nic = await LoneNic.create();
    const region = await nic.pd.regMr(100, 1);
    nic.qp.postSend({ opcode: 'RDMA_READ', wrId: 1, sges: [region.sge()], ...REMOTE });
    nic.take();
    await region.close();
    nic.response('RDMA_READ_RESPONSE_ONLY', 0, {}, pattern(100));
    expect(nic.done()).toMatchObject([{ wrId: 1, status: 4 }]);
    expect(region.bytes.every((byte) => byte === 0)).toBe(true);
  });

  it('a READ or atomic into memory that may not be written is a local protection error', async () => {
    for (const request of [
      { opcode: 'RDMA_READ', ...REMOTE },
      { opcode: 'ATOMIC_FETCH_AND_ADD', add: 1n, ...REMOTE },
    ] as const) {
      const nic = await LoneNic.create({ mrAccess: 0 });
      nic.qp.postSend({ ...request, wrId: 1, sges: [nic.mr.sge(0, 8)] });
      expect(nic.take()).toEqual([]);
      expect(nic.done()).toMatchObject([{ wrId: 1, status: 4 }]);
    }
  });

  it('a SEND from memory that may only be read is fine', async () => {
    const nic = await LoneNic.create({ mrAccess: 0 });
    nic.qp.postSend({ opcode: 'SEND', sges: [nic.mr.sge(0, 8)] });
    expect(nic.take()).toHaveLength(1);
  });

  it('a buffer that goes away between two packets stops the message there', async () => {
    const nic = await LoneNic.create({ attr: { inflightPackets: 2 } });
    const region = await nic.pd.regMr(4 * MTU, 0);
    nic.qp.postSend({ opcode: 'SEND', wrId: 1, sges: [region.sge()] });
    expect(nic.take()).toHaveLength(2);
    await region.close();
    nic.ack(1);
    expect(nic.take()).toEqual([]);
    expect(nic.done()).toMatchObject([{ wrId: 1, status: 4 }]);
  });

  it.each([0, 4, 16])('an atomic of %i bytes is a local length error', async (size) => {
    const nic = await LoneNic.create();
    nic.qp.postSend({ opcode: 'ATOMIC_FETCH_AND_ADD', wrId: 1, add: 1n, sges: [nic.mr.sge(0, size)], ...REMOTE });
    expect(nic.take()).toEqual([]);
    expect(nic.done()).toMatchObject([{ wrId: 1, status: 1 }]);
  });

  it('a READ where none were agreed is a local operation error', async () => {
    const nic = await LoneNic.create({ attr: { maxRdAtomic: 0 } });
    nic.qp.postSend({ opcode: 'RDMA_READ', wrId: 1, sges: [nic.mr.sge(0, 8)], ...REMOTE });
    expect(nic.done()).toMatchObject([{ wrId: 1, status: 2 }]);
  });
});
