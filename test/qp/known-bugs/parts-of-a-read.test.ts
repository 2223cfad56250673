/**
 * Selective repeat asked for a part of a READ whose request was lost. The responder counted each part as a message, and its MSN ran ahead
 * (IBTA vol. 1 §9.7.7).
 */

import { describe, expect, it } from 'vitest';
import { LoneNic, MTU, pattern } from '../../support/lone-nic.js';

const PACKETS = 4;

/** A NIC that has sent a READ of four responses, and a SEND behind it. */
async function withRead() {
  const nic = await LoneNic.create({ attr: { recovery: 'selective-repeat' } });
  nic.qp.postSend(
    { opcode: 'RDMA_READ', wrId: 1, sges: [nic.mr.sge(0, PACKETS * MTU)], remoteAddr: 0x1000n, rkey: 1 },
    { opcode: 'SEND', wrId: 2, sges: [nic.mr.sge(0, 8)] },
  );
  expect(nic.take().map(({ at }) => at)).toEqual([0, PACKETS]);
  return nic;
}

describe('a READ of selective repeat', () => {
  it('of which no response has come is asked for again as it was', async () => {
    const nic = await withRead();
    nic.sack(0, new Uint8Array(4)); // Nothing behind the gap was kept: one missing packet is all that the receiver can name.
    expect(nic.take()[0]).toMatchObject({ name: 'RDMA_READ_REQUEST', at: 0, dmaLength: PACKETS * MTU });
  });

  it('of which responses have come is asked for again where they are missing', async () => {
    const nic = await withRead();
    nic.response('RDMA_READ_RESPONSE_FIRST', 0, {}, pattern(MTU));
    nic.response('RDMA_READ_RESPONSE_MIDDLE', 2, {}, pattern(MTU));
    expect(nic.take()).toMatchObject([{ name: 'RDMA_READ_REQUEST', at: 1, dmaLength: MTU }]);
  });
});
