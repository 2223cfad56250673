/** Closing a queue pair sends the answers that it owes, and no request is executed without an answer. */

import { expect, it } from 'vitest';
import { NS_PER_MS, NS_PER_S } from '../../src/core/units.js';
import { connectQp, createPair, type Pair, type PairOptions } from '../support/pair.js';
import { until } from '../support/virtual-time.js';

/** Side b sends nothing for this long; without that a simulated NIC answers at once. */
async function pausedPair(pauseNs: number, options: PairOptions = {}): Promise<Pair> {
  const pair = await createPair({ attrA: { timeout: 12, retryCnt: 2 }, ...options });
  pair.b.host.pause(0, pauseNs);
  return pair;
}

function sendToB({ a, b }: Pair, wrId: number): void {
  b.qp.postRecv({ sges: [b.mr.sge(0, 4096)] });
  a.qp.postSend({ opcode: 'SEND', wrId, sges: [a.mr.sge(0, 4096)] });
}

async function statusOf(pair: Pair): Promise<string> {
  const wc = await until(pair.events, pair.a.cq.next());
  return `${wc.wrId} ${wc.statusName}`;
}

it('acknowledges what the program has received', async () => {
  const pair = await pausedPair(NS_PER_MS);
  sendToB(pair, 1);
  await until(pair.events, pair.b.recvCq.next());
  await until(pair.events, pair.b.qp.close());
  expect(pair.events.nowNs).toBeGreaterThanOrEqual(NS_PER_MS);
  expect(await statusOf(pair)).toBe('1 SUCCESS');
});

it('sends READ responses before the acknowledgement that follows them', async () => {
  const pair = await pausedPair(NS_PER_MS);
  const { a, b } = pair;
  b.mr.bytes.fill(7, 0, 65_536);
  const remote = { remoteAddr: b.mr.addr, rkey: b.mr.rkey };
  a.qp.postSend({ opcode: 'RDMA_READ', wrId: 1, sges: [a.mr.sge(0, 65_536)], ...remote });
  sendToB(pair, 2);
  await until(pair.events, b.recvCq.next());
  await until(pair.events, b.device.close());
  expect(await statusOf(pair)).toBe('1 SUCCESS');
  expect(await statusOf(pair)).toBe('2 SUCCESS');
  expect(a.mr.bytes[65_535]).toBe(7);
});

it('executes no request that comes after', async () => {
  const pair = await pausedPair(NS_PER_MS);
  sendToB(pair, 1);
  await until(pair.events, pair.b.recvCq.next());
  const closing = pair.b.qp.close();
  const { a, b } = pair;
  const target = { remoteAddr: b.mr.addr, rkey: b.mr.rkey };
  a.qp.postSend({ opcode: 'RDMA_WRITE', wrId: 2, inline: Buffer.alloc(8, 0xee), ...target });
  await until(pair.events, closing);
  expect(await statusOf(pair)).toBe('1 SUCCESS');
  expect(await statusOf(pair)).toBe('2 RETRY_EXC_ERR');
  expect(b.mr.bytes.includes(0xee)).toBe(false);
});

it('gives up after a second', async () => {
  const pair = await pausedPair(5 * NS_PER_S);
  sendToB(pair, 1);
  await until(pair.events, pair.b.recvCq.next());
  await until(pair.events, pair.b.qp.close());
  expect(pair.events.nowNs).toBeGreaterThanOrEqual(NS_PER_S);
  expect(pair.events.nowNs).toBeLessThan(2 * NS_PER_S);
  expect(await statusOf(pair)).toBe('1 RETRY_EXC_ERR');
});

it('negative control: to a peer that is gone nothing is acknowledged, and close() does not wait', async () => {
  const pair = await createPair({ attrA: { timeout: 12, retryCnt: 2 }, faults: 'b>a:random=1' });
  sendToB(pair, 1);
  await until(pair.events, pair.b.recvCq.next());
  const before = pair.events.nowNs;
  await until(pair.events, pair.b.qp.close());
  expect(pair.events.nowNs - before).toBeLessThan(NS_PER_MS);
  expect(await statusOf(pair)).toBe('1 RETRY_EXC_ERR');
});

it('a queue pair that is reset afterwards, and connected again, executes requests', async () => {
  const pair = await pausedPair(NS_PER_MS);
  const { a, b } = pair;
  sendToB(pair, 1);
  await until(pair.events, b.recvCq.next());
  await until(pair.events, b.qp.settle());
  for (const { qp } of [a, b]) await qp.modify({ state: 'RESET' });
  const [toA, toB] = [a, b].map(({ device, qp }) => ({ address: device.address, qpn: qp.qpn, psn: 0 }));
  const own = { psn: 0, mtu: 1024, recovery: 'go-back-n' } as const;
  await connectQp(a.qp, toB, own);
  await connectQp(b.qp, toA, own);
  sendToB(pair, 2);
  expect(await statusOf(pair)).toBe('2 SUCCESS');
});
