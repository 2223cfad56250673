import { describe, expect, it } from 'vitest';
import { recoveryNames } from '../../src/retransmit/recovery-schemes.js';
import { createPair } from '../support/pair.js';

describe.each(recoveryNames())('%s moves data', (recovery) => {
  it.each([0, 1, 5, 1023, 1024, 1025, 5000, 100_000, 1_000_000])('SEND of %i bytes', async (size) => {
    const { a, b, ...pair } = await createPair({ recovery }).then((p) => ({ a: p.a, b: p.b, pair: p }));
    for (let i = 0; i < size; i++) a.mr.bytes[i] = (i * 7 + 3) & 255;
    b.qp.postRecv({ wrId: 5, sges: [b.mr.sge()] });
    a.qp.postSend({ opcode: 'SEND', wrId: 9, sges: [a.mr.sge(0, size)] });
    const [wc] = pair.pair.completions(a.cq, 1);
    expect(wc).toMatchObject({ wrId: 9, status: 0, opcode: 'SEND' });
    expect(pair.pair.completions(b.recvCq, 1)).toMatchObject([{ wrId: 5, status: 0, opcode: 'RECV', byteLen: size }]);
    expect(b.mr.bytes.subarray(0, size).equals(a.mr.bytes.subarray(0, size))).toBe(true);
  });

  it.each([0, 1, 4096, 1_000_000])('WRITE and READ back %i bytes', async (size) => {
    const pair = await createPair({ recovery });
    const { a, b } = pair;
    for (let i = 0; i < size; i++) b.mr.bytes[i] = (i * 11 + 3) & 255;
    a.qp.postSend({ opcode: 'RDMA_READ', wrId: 1, sges: [a.mr.sge(0, size)], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
    expect(pair.completions(a.cq, 1)).toMatchObject([{ wrId: 1, status: 0, opcode: 'RDMA_READ' }]);
    expect(b.mr.bytes.subarray(0, size).equals(a.mr.bytes.subarray(0, size))).toBe(true);
    for (let i = 0; i < size; i++) a.mr.bytes[i] = (i * 13 + 5) & 255;
    a.qp.postSend({ opcode: 'RDMA_WRITE', wrId: 2, sges: [a.mr.sge(0, size)], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
    expect(pair.completions(a.cq, 1)).toMatchObject([{ wrId: 2, status: 0, opcode: 'RDMA_WRITE' }]);
    expect(b.mr.bytes.subarray(0, size).equals(a.mr.bytes.subarray(0, size))).toBe(true);
  });

  it('atomics', async () => {
    const pair = await createPair({ recovery });
    const { a, b } = pair;
    b.mr.bytes.writeBigUInt64LE(5n, 8);
    const target = { remoteAddr: b.mr.addr + 8n, rkey: b.mr.rkey, sges: [a.mr.sge(0, 8)] };
    a.qp.postSend({ opcode: 'ATOMIC_FETCH_AND_ADD', add: 0xffffffffffffffffn, ...target });
    expect(pair.completions(a.cq, 1)).toMatchObject([{ status: 0, opcode: 'FETCH_ADD' }]);
    expect(a.mr.bytes.readBigUInt64LE(0)).toBe(5n);
    expect(b.mr.bytes.readBigUInt64LE(8)).toBe(4n);
    a.qp.postSend({ opcode: 'ATOMIC_CMP_AND_SWP', compare: 4n, swap: 77n, ...target });
    expect(pair.completions(a.cq, 1)).toMatchObject([{ status: 0, opcode: 'COMP_SWAP' }]);
    expect(b.mr.bytes.readBigUInt64LE(8)).toBe(77n);
  });

  it('survives random loss, corruption, duplicates and reordering', async () => {
    if (recovery === 'go-back-0') return;
    const pair = await createPair({ recovery, faults: 'random=0.01;corrupt=0.01;duplicate=0.01;reorder=0.01,3' });
    const { a, b } = pair;
    for (let i = 0; i < 1 << 20; i++) a.mr.bytes[i] = (i * 13 + (i >> 8)) & 255;
    for (let k = 0; k < 4; k++) {
      b.qp.postRecv({ wrId: k, sges: [b.mr.sge(k << 18, 1 << 18)] });
      a.qp.postSend({ opcode: 'SEND', wrId: k, sges: [a.mr.sge(k << 18, 1 << 18)] });
    }
    expect(pair.completions(a.cq, 4)).toMatchObject([{ status: 0 }, { status: 0 }, { status: 0 }, { status: 0 }]);
    expect(b.mr.bytes.equals(a.mr.bytes)).toBe(true);
  });
});
