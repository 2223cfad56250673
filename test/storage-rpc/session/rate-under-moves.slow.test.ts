/** I/O of a storage host while RDMA fails and returns, in virtual time, with both transports equally far away. */

import { expect, test } from 'vitest';
import type { HostConnections } from '../../../src/storage-rpc/session/host-connections.js';
import type { ClientSession } from '../../../src/storage-rpc/sk/client-session.js';
import { Rig, readIo } from '../sk/rig.js';

const SECOND = 1e9;
const SESSIONS = 5;
/** A round trip of 20 ms: few requests per second, so that the test is short. */
const DELAY_NS = 10e6;

interface Load {
  readonly rig: Rig;
  readonly host: HostConnections;
  /** Requests that complete within so many seconds, and the longest but one in a hundred, nanoseconds. */
  during(seconds: number): Promise<{ count: number; p99Ns: number }>;
}

async function loaded(seed: number): Promise<Load> {
  const rig = await Rig.create({ seed, delayNs: DELAY_NS, tcpDelayNs: DELAY_NS });
  const host = rig.host();
  const sessions: ClientSession[] = [];
  for (let i = 0; i < SESSIONS; i++) sessions.push((await rig.until(host.open())).session);
  let latencies: number[] = [];
  let endNs = 0;
  const one = async (session: ClientSession) => {
    const into = Buffer.alloc(4096);
    while (rig.clock.nowNs() < endNs) {
      const startNs = rig.clock.nowNs();
      await session.submit(readIo(0, into));
      latencies.push(rig.clock.nowNs() - startNs);
    }
  };
  let running: Promise<unknown> = Promise.resolve();
  const during = async (seconds: number) => {
    latencies = [];
    endNs = rig.clock.nowNs() + seconds * SECOND;
    running = Promise.all([running, ...sessions.map(one)]);
    await rig.pass(seconds * SECOND);
    const sorted = latencies.toSorted((a, b) => a - b);
    return { count: sorted.length, p99Ns: sorted[Math.floor(0.99 * sorted.length)] ?? Number.POSITIVE_INFINITY };
  };
  return { rig, host, during };
}

test.each([1, 2])('seed %i: five seconds after an outage p99 is at most doubled', async (seed) => {
  const { rig, during } = await loaded(seed);
  const before = await during(1);
  rig.cut();
  const outage = await during(0.05);
  expect(outage.count).toBeLessThan(0.8 * 0.05 * before.count); // The measure sees the outage.
  await rig.pass(4.95 * SECOND);
  const after = await during(1);
  expect(after.p99Ns).toBeLessThanOrEqual(2 * before.p99Ns);
  expect(after.count).toBeGreaterThanOrEqual(0.8 * before.count);
});

test.each([1, 2])('seed %i: while sessions return to RDMA, four fifths of the I/O rate remain', async (seed) => {
  const { rig, host, during } = await loaded(seed);
  host.failRdma('a test');
  await rig.pass(SECOND);
  const normal = await during(1);
  while (host.state !== 'RAMP') await rig.pass(0.1 * SECOND);
  let seconds = 0;
  for (; host.state === 'RAMP'; seconds++) expect((await during(1)).count).toBeGreaterThanOrEqual(0.8 * normal.count);
  expect(seconds).toBeGreaterThanOrEqual(SESSIONS - 1);
  expect([host.state, host.count('rdma')]).toEqual(['RDMA', SESSIONS]);
});
