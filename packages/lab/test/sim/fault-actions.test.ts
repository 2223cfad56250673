import { describe, expect, it } from 'vitest';
import { createPair } from '../../../../test/support/pair.js';

const MTU = 1024;

/** A WRITE of eight packets from a to b under fault rules: how long it took, and what was counted. */
async function write(faults?: string) {
  const pair = await createPair({
    mtu: MTU,
    ...(faults !== undefined && { faults }),
  });
  const { a, b, events } = pair;
  a.mr.bytes.fill(7, 0, 8 * MTU);
  a.qp.postSend({
    opcode: 'RDMA_WRITE',
    sges: [a.mr.sge(0, 8 * MTU)],
    remoteAddr: b.mr.addr,
    rkey: b.mr.rkey,
  });
  const [completion] = pair.completions(a.cq, 1);
  const tookNs = events.nowNs;
  pair.run();
  return { completion, tookNs, link: pair.link.counters, a: a.device.counters(), b: b.device.counters() };
}

describe('actions of fault rules on a simulated link', () => {
  it('a delay is exact', async () => {
    const plain = await write();
    const late = await write('b>a:every=1,delay=200us');
    expect(late.completion.statusName).toBe('SUCCESS');
    expect(late.tookNs - plain.tookNs).toBe(200_000);
    expect(late.link['b>a'].faults_delayed).toBe(1);
  });

  it('a packet that comes late is asked for again, without a loss', async () => {
    const { link, completion, a } = await write('a>b:rpsn=2,delay=20us:once');
    expect(completion.statusName).toBe('SUCCESS');
    expect(link['a>b']).toMatchObject({ faults_delayed: 1, dropped: 0 });
    expect(a.tx_retransmitted).toBeGreaterThan(0);
    expect((await write('a>b:rpsn=2,delay=1ns:once')).a.tx_retransmitted).toBe(0);
  });

  it('a mark is answered by a CNP, and nothing else is', async () => {
    const marked = await write('a>b:rpsn=3,mark');
    expect(marked.link['a>b'].faults_marked).toBe(1);
    expect(marked.b.np_cnp_sent).toBe(1);
    const unmarked = await write('a>b:rpsn=9,mark');
    expect(unmarked.b.np_cnp_sent).toBe(0);
  });

  it('what a receiver does with a field that is rewritten: the ICRC is right, so it believes it', async () => {
    const { link, completion } = await write('a>b:rpsn=0,rewrite=rkey,+1');
    expect(link['a>b'].faults_rewritten).toBe(1);
    expect(completion.statusName).toBe('REM_ACCESS_ERR');
    // As it was, only damaged: dropped, and sent again.
    expect((await write('a>b:rpsn=0,corrupt:once')).completion.statusName).toBe('SUCCESS');
  });

  it('trimmed packets are lost, and a rate slows a transfer down', async () => {
    const { link, completion, b } = await write('a>b:rpsn=4,trim=64:once');
    expect([completion.statusName, link['a>b'].faults_trimmed]).toEqual(['SUCCESS', 1]);
    expect(b.rx_icrc_errors + b.rx_drop_parse).toBe(1);
    // Eight packets of 1,040 bytes, a RETH, and one ACK the other way, which is not slowed down.
    const slow = await write('a>b:every=1,rate=10Mbps');
    const fast = await write();
    const bits = 8 * (8 * 1040 + 16);
    expect(slow.tookNs - fast.tookNs).toBeGreaterThan((bits / 10e6) * 1e9 - 10_000);
    expect(slow.tookNs - fast.tookNs).toBeLessThan((bits / 10e6) * 1e9 + 10_000);
  });
});
