import { describe, expect, it } from 'vitest';
import { createPair } from '../support/pair.js';

const MTU = 1024;
const BYTES = 1 << 20;

/** Every packet sent is of use, or was lost, or was sent beyond a lost one: what a rewind counts is exactly what it costs. */
describe('rewinds of go-back-N account for every packet sent in vain', () => {
  it.each([
    ['RDMA_WRITE', 'a>b'],
    ['RDMA_READ', 'b>a'],
  ] as const)('%s, a window at a time', async (opcode, direction) => {
    const pair = await createPair({
      faults: `${direction}:every=100`,
      mtu: MTU,
      memoryBytes: BYTES,
      receiveBudgetPackets: 32,
    });
    const { a, b } = pair;
    a.qp.postSend({ opcode, sges: [a.mr.sge(0, BYTES)], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
    expect(pair.completions(a.cq, 1)).toMatchObject([{ status: 0 }]);
    const counters = (opcode === 'RDMA_READ' ? b : a).device.counters();
    const inVain = counters.tx_data_packets - BYTES / MTU;
    expect(inVain).toBeGreaterThan(0);
    expect(counters.retry_rewinds + counters.retry_rewind_packets).toBe(inVain);
    expect(counters.retry_rewinds).toBe(Math.floor(counters.tx_data_packets / 100));
  });
});
