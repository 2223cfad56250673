/** Dumps of ring elements: the hex is what stands in memory, the words are what was posted. */

import { describe, expect, it } from 'vitest';
import type { SendWorkRequest } from '../../src/verbs/send-work-request.js';
import { LoneNic, pattern } from '../support/lone-nic.js';

const REMOTE = { remoteAddr: 0x7f00_1122_3344n, rkey: 0x1a2b };

async function dumpOf(make: (nic: LoneNic) => SendWorkRequest): Promise<string> {
  const nic = await LoneNic.create();
  nic.qp.postSend(make(nic));
  return nic.qp.dumpWqe();
}

describe('dumpWqe', () => {
  it('shows a WRITE byte by byte and in words', async () => {
    const nic = await LoneNic.create();
    const sges = [
      { addr: 0x7f0000000010n, length: 100, lkey: 0xabcd01 },
      { addr: 0x20n, length: 7, lkey: 0xabcd02 },
    ];
    nic.qp.postSend({
      opcode: 'RDMA_WRITE_WITH_IMM',
      immediate: 0xdeadbeef,
      fence: true,
      solicited: true,
      sges,
      ...REMOTE,
    });
    expect(nic.qp.dumpWqe(0)).toBe(
      [
        'WQE 0 (slot 0 of 128) waiting',
        '  0000  01070200 6b000000 44332211 007f0000',
        '  0010  2b1a0000 efbeadde 00000000 00000000',
        '  0020  00000000 00000000 00000000 00000000',
        '  0030  00000000 00000000 00000000 00000000',
        '  0040  10000000 007f0000 64000000 01cdab00',
        '  0050  20000000 00000000 07000000 02cdab00',
        '  RDMA_WRITE_WITH_IMM flags FENCE|SIGNALED|SOLICITED, 107 bytes',
        '  remote 0x00007f0011223344 rkey 0x00001a2b',
        '  immediate 0xdeadbeef',
        '  sge[0] 0x00007f0000000010 100 bytes lkey 0x00abcd01',
        '  sge[1] 0x0000000000000020 7 bytes lkey 0x00abcd02',
      ].join('\n'),
    );
  });

  it('shows inline data', async () => {
    const dump = await dumpOf(() => ({ opcode: 'SEND', inline: Buffer.from('hello'), signaled: false }));
    expect(dump).toContain('SEND flags INLINE, 5 bytes');
    expect(dump).toContain('  0040  68656c6c 6f\n');
    expect(dump).toContain('inline 5 bytes');
    expect(dump).not.toContain('sge[');
  });

  it.each([
    [
      'compare 0x0000000000000005 swap 0xffffffffffffffff',
      { opcode: 'ATOMIC_CMP_AND_SWP', compare: 5n, swap: 2n ** 64n - 1n, sges: [], ...REMOTE },
    ],
    ['add 0x0000000100000002', { opcode: 'ATOMIC_FETCH_AND_ADD', add: 0x1_0000_0002n, sges: [], ...REMOTE }],
    ['invalidate rkey 0x12345678', { opcode: 'SEND_WITH_INV', invalidateRkey: 0x12345678 }],
    ['invalidate key 0x12345678', { opcode: 'LOCAL_INV', invalidateRkey: 0x12345678 }],
    ['immediate 0x00000007', { opcode: 'SEND_WITH_IMM', immediate: 7 }],
    ['remote 0x00007f0011223344', { opcode: 'RDMA_READ', ...REMOTE }],
    ['opcode 255 flags SIGNALED', { opcode: 'NONSENSE' }],
  ])('says %s', async (text, request) => {
    expect(await dumpOf(() => request as SendWorkRequest)).toContain(text);
  });

  it('names windows and regions', async () => {
    const nic = await LoneNic.create();
    const mw = await nic.pd.allocMw(1);
    const rkey = mw.nextRkey();
    nic.qp.postSend({ opcode: 'BIND_MW', mw, rkey, mr: nic.mr, offset: 16, length: 8, access: 6 });
    const base = (nic.mr.addr + 16n).toString(16).padStart(16, '0');
    const key = rkey.toString(16).padStart(8, '0');
    expect(nic.qp.dumpWqe()).toContain(`window ${mw.handle} new rkey 0x${key} base 0x${base} access 0x06`);
  });

  it('tells where the element stands', async () => {
    const nic = await LoneNic.create({ qp: { maxSendWr: 2 } });
    nic.qp.postSend({ opcode: 'SEND' }, { opcode: 'SEND' });
    nic.take();
    nic.ack(0);
    expect(nic.qp.dumpWqe(0)).toMatch(/^WQE 0 \(slot 0 of 2\) taken\n/);
    expect(nic.qp.dumpWqe(1)).toMatch(/^WQE 1 \(slot 1 of 2\) waiting\n/);
    expect(nic.qp.dumpWqe(2)).toMatch(/^WQE 2 \(slot 0 of 2\) not written yet\n/);
  });
});

describe('dumpCqe', () => {
  it('shows a failed request with its cause', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend({ opcode: 'RDMA_READ', sges: [nic.mr.sge(0, 8)], ...REMOTE });
    nic.take();
    nic.ack(0, 0x62);
    const qpn = nic.qp.qpn.toString(16).padStart(6, '0');
    const lines = nic.cq.dumpCqe().split('\n');
    expect(lines[0]).toBe('CQE 0 (slot 0 of 1024) waiting');
    expect(lines.slice(1, 5).map((line) => line.slice(0, 8))).toEqual(['  0000  ', '  0010  ', '  0020  ', '  0030  ']);
    expect(lines.slice(5)).toEqual([
      `  send completion of WQE 0 on QP 0x${qpn}: REM_ACCESS_ERR (10)`,
      '  RDMA_READ flags none, 8 bytes',
      '  vendor error 0x62',
    ]);
    nic.done();
    expect(nic.cq.dumpCqe(0)).toMatch(/^CQE 0 .* taken\n/);
  });

  it('shows a receive with immediate data', async () => {
    const nic = await LoneNic.create();
    nic.qp.postRecv({ sges: [nic.mr.sge()] });
    nic.request('SEND_ONLY_WITH_IMMEDIATE', 0, { immediate: 0xcafe, solicited: true }, pattern(12));
    const dump = nic.recvCq.dumpCqe();
    expect(dump).toMatch(/receive completion of cookie \d+ on QP 0x[0-9a-f]{6}: SUCCESS \(0\)/);
    expect(dump).toContain('RECV flags WITH_IMM|SOLICITED, 12 bytes\n  immediate 0x0000cafe');
  });
});
