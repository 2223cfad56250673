import { describe, expect, it } from 'vitest';
import { LoneNic } from './lone-nic.js';
import { createPair, type Pair } from './pair.js';
import { DidNotSettle, until } from './virtual-time.js';

/** One packet in 256 is lost: under go-back-0 a message of 512 packets begins again for ever, under go-back-N it arrives. */
async function lossyWrite(recovery: 'go-back-0' | 'go-back-n'): Promise<Pair> {
  const pair = await createPair({ recovery, mtu: 256, faults: 'a>b:ip-id-lsb=0xff' });
  const { a, b } = pair;
  const sges = [a.mr.sge(0, 512 * 256)];
  a.qp.postSend({ opcode: 'RDMA_WRITE', sges, remoteAddr: b.mr.addr, rkey: b.mr.rkey });
  return pair;
}

describe('a protocol that never comes to rest', () => {
  it('ends every kind of run with the verdict', async () => {
    const pair = await lossyWrite('go-back-0');
    const eventsMax = 50_000;
    expect(() => pair.run({ eventsMax })).toThrow(/^did not settle: after 50000 events, at \d+ ns of virtual time/);
    expect(() => pair.completions(pair.a.cq, 1, eventsMax)).toThrow(DidNotSettle);
    await expect(until(pair.events, pair.a.cq.next(), eventsMax)).rejects.toThrow(DidNotSettle);
  });

  it('may run as long as it was given, without it', async () => {
    const pair = await lossyWrite('go-back-0');
    pair.run({ untilNs: 1e6, eventsMax: 50_000 });
    expect(pair.events.nowNs).toBe(1e6);
  });

  it('ends what a test asks of a lone NIC with it, too', async () => {
    const nic = await LoneNic.create();
    const again = () => nic.events.after(0, again);
    again();
    expect(() => nic.take()).toThrow(DidNotSettle);
  });
});

it('one that comes to rest needs no verdict, whatever its limit', async () => {
  const pair = await lossyWrite('go-back-n');
  expect(pair.completions(pair.a.cq, 1)).toMatchObject([{ status: 0 }]);
  pair.run();
  let ran = 0;
  for (let i = 0; i < 10; i++) pair.events.after(1, () => ran++);
  pair.run({ eventsMax: 10 });
  expect(ran).toBe(10);
});

it('completions that do not come are missed, not waited for', async () => {
  const pair = await lossyWrite('go-back-n');
  expect(() => pair.completions(pair.a.cq, 2)).toThrow('everything is at rest after 1 of 2 completions');
});
