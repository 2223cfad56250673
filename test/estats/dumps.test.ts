import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Dump } from '../../src/verbs/estats/dump-log.js';
import { createPair, type Pair } from '../support/pair.js';

function write(pair: Pair, rkeyError = 0): void {
  const { a, b } = pair;
  a.qp.postSend({
    opcode: 'RDMA_WRITE',
    sges: [a.mr.sge(0, 8)],
    remoteAddr: b.mr.addr,
    rkey: b.mr.rkey + rkeyError,
  });
}

async function dumpsOf(pair: Pair): Promise<readonly Dump[]> {
  for (let n = 0; n < 5; n++) await nextTurn(); // The NIC's answer to the dump's questions.
  return pair.a.device.estats!.dumpLog.dumps;
}

describe('a dump is made', () => {
  it('when a work request fails, with the queue pair, its last packets and the counters', async () => {
    const pair = await createPair({ estats: {} });
    write(pair);
    pair.completions(pair.a.cq, 1);
    write(pair, 1);
    pair.completions(pair.a.cq, 1);
    const [dump] = await dumpsOf(pair);
    expect(dump).toMatchObject({
      reason: 'error',
      op: 'RDMA_WRITE',
      status: 'REM_ACCESS_ERR',
      conn: `0x${pair.a.qp.qpn.toString(16)}>192.0.2.2/0x${pair.b.qp.qpn.toString(16)}`,
      qp: { state: 'ERR', remote: '192.0.2.2', sqPsn: 0x102, newPsn: 0x102 },
      device: { req_remote_access_errors: 1 },
    });
    expect(dump.packets.map(({ direction, opcode, psn, answer }) => [direction, opcode, psn, answer])).toEqual([
      ['sent', 'RDMA_WRITE_ONLY', 0x100, undefined],
      ['received', 'ACKNOWLEDGE', 0x100, 'ACK'],
      ['sent', 'RDMA_WRITE_ONLY', 0x101, undefined],
      ['received', 'ACKNOWLEDGE', 0x101, 'NAK 0x62'],
    ]);
    expect(dump.packets[0].agoNs).toBeGreaterThan(dump.packets[3].agoNs);
  });

  it('when one takes 100 ms and ten times as long as is usual', async () => {
    const pair = await createPair({ estats: {} });
    write(pair);
    pair.run({ untilNs: pair.events.nowNs + 99e6 });
    pair.a.cq.poll();
    expect(await dumpsOf(pair)).toEqual([]);
    write(pair);
    pair.run({ untilNs: pair.events.nowNs + 101e6 });
    pair.a.cq.poll();
    const [dump] = await dumpsOf(pair);
    expect(dump).toMatchObject({ reason: 'slow', op: 'RDMA_WRITE', status: 'SUCCESS', qp: { state: 'RTS' } });
    expect(dump.stagesNs?.t6_t5).toBeGreaterThan(100e6);
  });

  it('once a queue pair in ten seconds, whatever fails', async () => {
    const pair = await createPair({ estats: {} });
    write(pair, 1);
    for (let n = 0; n < 20; n++) write(pair);
    pair.completions(pair.a.cq, 21);
    expect(await dumpsOf(pair)).toHaveLength(1);
    expect(pair.a.device.estats!.dumpLog.suppressed).toBe(20);
    pair.run({ untilNs: pair.events.nowNs + 10e9 });
    write(pair);
    pair.a.cq.poll();
    expect(await dumpsOf(pair)).toHaveLength(2);
  });

  it('of every connection when somebody asks', async () => {
    const pair = await createPair({ estats: {} });
    await pair.a.device.estats!.dumpAll();
    await pair.a.device.estats!.dumpAll();
    expect(await dumpsOf(pair)).toMatchObject([{ reason: 'asked' }, { reason: 'asked' }]);
  });
});

describe('the log of dumps', () => {
  it('keeps the newest 32', async () => {
    const pair = await createPair({ estats: {} });
    for (let n = 0; n < 40; n++) await pair.a.device.estats!.dumpAll();
    expect(await dumpsOf(pair)).toHaveLength(32);
  });

  it('survives a queue pair that is gone before the NIC answers', async () => {
    const pair = await createPair({ estats: {} });
    write(pair, 1);
    pair.completions(pair.a.cq, 1);
    await pair.a.qp.close();
    expect(await dumpsOf(pair)).toHaveLength(1);
  });
});
