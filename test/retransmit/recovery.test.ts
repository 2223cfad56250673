import { expect, it } from 'vitest';
import { recoveryNames } from '../../src/retransmit/recovery-schemes.js';
import { describeRecovery } from '../contracts/recovery-contract.js';
import { createPair } from '../support/pair.js';

for (const name of recoveryNames()) describeRecovery(name);

it('go-back-n is not sent back by a NAK that arrives after what it names was acknowledged', async () => {
  const mtu = 256;
  const pair = await createPair({
    recovery: 'go-back-n',
    mtu,
    startPsnA: 0xfffffe,
    attrA: { inflightPackets: 16 },
    // The first packet is lost; the NAK about it, the first answer of all, is overtaken by three acknowledgements.
    faults: 'a>b:psn=0xfffffe:once;b>a:reorder=1,3:once',
  });
  const { a, b } = pair;
  a.mr.bytes.fill(7, 0, 64 * mtu);
  b.qp.postRecv({ sges: [b.mr.sge()] });
  a.qp.postSend({ opcode: 'SEND', sges: [a.mr.sge(0, 64 * mtu)] });
  expect(pair.completions(a.cq, 1)).toMatchObject([{ statusName: 'SUCCESS' }]);
  pair.run();
  const { retry_rewinds, local_ack_timeout_err, stale_response, tx_retransmitted } = a.device.counters();
  expect({ retry_rewinds, local_ack_timeout_err, stale_response, tx_retransmitted }).toEqual({
    retry_rewinds: 1,
    local_ack_timeout_err: 1,
    stale_response: 1,
    tx_retransmitted: 16,
  });
  expect(b.mr.bytes.equals(a.mr.bytes)).toBe(true);
});
