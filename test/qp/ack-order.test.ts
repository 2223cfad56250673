/** What leaves first when a queue pair has both an answer without data and requests of its own to send. */

import { describe, expect, it } from 'vitest';
import { LoneNic, MTU } from '../support/lone-nic.js';

/** A NIC that sends `count` messages of one packet in the turn in which it has received what `arrive` delivers. */
async function sendsAfter(arrive: (nic: LoneNic) => void, count: number) {
  const nic = await LoneNic.create();
  for (let n = 0; n < 4; n++) nic.qp.postRecv({ sges: [nic.mr.sge(0, 100)] });
  arrive(nic);
  for (let n = 0; n < count; n++) nic.qp.postSend({ opcode: 'SEND', wrId: n, sges: [nic.mr.sge(0, 8)] });
  return nic.take().map(({ name }) => name);
}

const request = (nic: LoneNic) => nic.request('SEND_ONLY', 0, { ackReq: true });

describe('an ACK', () => {
  it('leaves before the answer to the request that it acknowledges', async () => {
    expect(await sendsAfter(request, 1)).toEqual(['ACKNOWLEDGE', 'SEND_ONLY']);
  });

  it('leaves so however the turns before have ended', async () => {
    const nic = await LoneNic.create();
    for (let turn = 0; turn < 5; turn++) {
      nic.qp.postRecv({ sges: [nic.mr.sge(0, 100)] });
      nic.request('SEND_ONLY', turn, { ackReq: true });
      nic.qp.postSend({ opcode: 'SEND', wrId: turn, sges: [nic.mr.sge(0, 8)] });
      expect(nic.take()).toMatchObject([
        { name: 'ACKNOWLEDGE', at: turn },
        { name: 'SEND_ONLY', at: turn },
      ]);
      nic.ack(turn);
    }
  });

  it('does not part the packets of a block', async () => {
    expect((await sendsAfter(request, 6)).indexOf('ACKNOWLEDGE')).toBe(0);
  });

  it('leaves at once when nothing else is to be sent', async () => {
    expect(await sendsAfter(request, 0)).toEqual(['ACKNOWLEDGE']);
  });
});

describe('what is more than an ACK', () => {
  const responses = (nic: LoneNic) => nic.request('RDMA_READ_REQUEST', 0, { dmaLength: 4 * MTU });
  const early = (nic: LoneNic) => nic.request('SEND_ONLY', 1, { ackReq: true });

  it.each([
    ['a sequence NAK', early],
    ['a READ response', responses],
  ])('%s takes the first turn or the second', async (_, arrive) => {
    const sent = await sendsAfter(arrive, 3);
    expect(new Set(sent.slice(0, 2)).size).toBe(2);
  });

  it('an ACK behind READ responses leaves after them', async () => {
    const both = (nic: LoneNic) => {
      responses(nic);
      nic.request('SEND_ONLY', 4, { ackReq: true });
    };
    const sent = await sendsAfter(both, 1);
    expect(sent.filter((name) => name === 'SEND_ONLY')).toHaveLength(1);
    expect(sent.at(-1)).toBe('ACKNOWLEDGE');
    expect(sent.slice(0, 2)).toContain('SEND_ONLY');
  });
});
