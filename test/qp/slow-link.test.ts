import { describe, expect, it } from 'vitest';
import { createPair } from '../support/pair.js';

describe('the retransmission timer on a slow link', () => {
  // 1 KiB packets take 0.9 ms each and acknowledgements are 32 packets apart; the timeout is 8.4 ms.
  it.each(['RDMA_WRITE', 'RDMA_READ'] as const)('sends nothing again while %s goes on without loss', async (opcode) => {
    const pair = await createPair({ rateBps: 10e6, attrA: { timeout: 11 } });
    const { a, b } = pair;
    a.qp.postSend({ opcode, sges: [a.mr.sge(0, 300_000)], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
    expect(pair.completions(a.cq, 1)).toMatchObject([{ status: 0 }]);
    expect(a.device.counters()).toMatchObject({ local_ack_timeout_err: 0, tx_retransmitted: 0 });
  });

  it('still gives up on a peer that answers nothing', async () => {
    const pair = await createPair({ rateBps: 10e6, attrA: { timeout: 11, retryCnt: 2 }, faults: 'b>a:random=1' });
    const { a, b } = pair;
    a.qp.postSend({ opcode: 'RDMA_WRITE', sges: [a.mr.sge(0, 300_000)], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
    expect(pair.completions(a.cq, 1)).toMatchObject([{ statusName: 'RETRY_EXC_ERR' }]);
    expect(a.device.counters().local_ack_timeout_err).toBe(3);
  });
});
