/** A program gives registered memory to another thread, which leaves an empty array. That ends what uses the memory, as a region that was deregistered does, and nothing else. */

import { describe, expect, it } from 'vitest';
import { Access } from '../../src/verbs/access.js';
import { LoneNic, MTU, nak, pattern } from '../support/lone-nic.js';

const NAK_REMOTE_ACCESS = 0x62;
const BYTES = 4 * MTU;

/** A NIC with a region of its own, and how its memory goes away. */
async function nicWithRegion() {
  const nic = await LoneNic.create();
  const memory = new Uint8Array(BYTES);
  const region = await nic.pd.regMr(memory, Access.REMOTE_ALL);
  const takeAway = () => {
    structuredClone(memory, { transfer: [memory.buffer] });
    expect(memory).toHaveLength(0);
  };
  return { nic, region, takeAway };
}

/** Where a request of the peer is aimed at. */
const target = ({ addr: va, rkey }: { addr: bigint; rkey: number }) => ({ va, rkey, dmaLength: BYTES });

describe('memory that is gone', () => {
  it('is not sent', async () => {
    const { nic, region, takeAway } = await nicWithRegion();
    takeAway();
    nic.qp.postSend({ opcode: 'SEND', wrId: 1, sges: [{ addr: region.addr, length: BYTES, lkey: region.lkey }] });
    expect(nic.take()).toEqual([]);
    expect(nic.done()).toMatchObject([{ wrId: 1, statusName: 'LOC_PROT_ERR' }]);
  });

  it('is not sent again', async () => {
    const { nic, region, takeAway } = await nicWithRegion();
    nic.qp.postSend({ opcode: 'SEND', wrId: 1, sges: [region.sge()] });
    expect(nic.take()).toHaveLength(4);
    takeAway();
    nic.ack(1, 0x60); // The second packet is missing.
    expect(nic.take()).toEqual([]);
    expect(nic.done()).toMatchObject([{ wrId: 1, statusName: 'LOC_PROT_ERR' }]);
  });

  it('takes no more packets of a WRITE that has begun', async () => {
    const { nic, region, takeAway } = await nicWithRegion();
    nic.request('RDMA_WRITE_FIRST', 0, target(region), pattern(MTU));
    takeAway();
    nic.request('RDMA_WRITE_MIDDLE', 1, {}, pattern(MTU));
    expect(nic.take()).toMatchObject([nak(NAK_REMOTE_ACCESS, 1)]);
  });

  it.each([
    ['RDMA_WRITE_FIRST', MTU],
    ['RDMA_READ_REQUEST', 0],
  ])('is not there for %s', async (name, payloadBytes) => {
    const { nic, region, takeAway } = await nicWithRegion();
    takeAway();
    nic.request(name, 0, target(region), pattern(payloadBytes));
    expect(nic.take()).toMatchObject([nak(NAK_REMOTE_ACCESS, 0)]);
  });

  it('receives nothing', async () => {
    const { nic, region, takeAway } = await nicWithRegion();
    nic.qp.postRecv({ wrId: 5, sges: [region.sge()] });
    takeAway();
    nic.request('SEND_ONLY', 0, { ackReq: true }, pattern(MTU));
    expect(nic.received()).toMatchObject([{ wrId: 5, statusName: 'LOC_PROT_ERR' }]);
  });
});
