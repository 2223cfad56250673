/** What IRN has beyond selective repeat: the cap on packets in flight, and two timeouts (SIGCOMM 2018, §3.1, §3.2). */

import { describe, expect, it } from 'vitest';
import { runScenario } from '../../packages/lab/src/sim/scenario/run-scenario.js';
import { parseScenario } from '../../packages/lab/src/sim/scenario/schema.js';
import { createSender, recoverySettings } from '../../src/retransmit/recovery-schemes.js';

const create = (parameters: object = {}) => createSender(recoverySettings({ name: 'irn', ...parameters }));

describe('the timeouts of irn', () => {
  it("are the paper's where they are given: the low one with at most three packets in flight", () => {
    const sender = create({ lowTimeoutNs: 100_000, highTimeoutNs: 320_000 });
    expect([1, 3, 4, 110].map((inFlight) => sender.timeoutNs(1e9, inFlight))).toEqual([1e5, 1e5, 320_000, 320_000]);
  });

  it('keep its ratio to the ACK timeout of the queue pair where they are not', () => {
    expect([3, 4].map((inFlight) => create().timeoutNs(64e6, inFlight))).toEqual([20e6, 64e6]);
  });

  it('are refused where the low one is above the high one', () => {
    expect(() => create({ lowTimeoutNs: 2000, highTimeoutNs: 1000 })).toThrow(/lowTimeoutNs is above highTimeoutNs/);
  });
});

/** An incast of 8 on 240 KB a port at 40 Gb/s without pauses, as in §4 of the paper; the timeout of the others is 1.05 ms. */
async function incast(recovery: string | object) {
  const { summary, queues } = await runScenario(
    parseScenario({
      name: 'incast',
      duration: '30ms',
      topology: { kind: 'star', hosts: 9, rate: '40Gbps', delay: '2us' },
      nic: { recovery, timeout: 8 },
      switch: { queuePackets: 217 },
      flows: [{ kind: 'flows', from: 'h0..h7', to: 'h8', bytes: '512KiB' }],
    }),
    { realNowNs: () => 0 },
  );
  return { ...summary, longestQueue: Math.max(...queues.map(({ maxBytes }) => maxBytes)) };
}

const PAPER = { name: 'irn', lowTimeoutNs: '100us', highTimeoutNs: '320us' };

describe('an incast without pauses', () => {
  it('ends under irn, sooner and with fewer repetitions than under go-back-N and selective repeat', async () => {
    const [irn, selective, goBack] = await Promise.all([PAPER, 'selective-repeat', 'go-back-n'].map(incast));
    expect(irn.completions).toMatchObject({ count: 8, unfinished: 0 });
    expect(irn.completions.p99Ns!).toBeLessThan(selective.completions.p99Ns!);
    expect(irn.completions.p99Ns!).toBeLessThan(goBack.completions.p99Ns ?? Number.POSITIVE_INFINITY);
    expect(irn.droppedPackets).toBeLessThan(selective.droppedPackets);
    expect(irn.retransmittedPackets).toBeLessThan(goBack.retransmittedPackets);
  });

  it('loses nothing where the cap of all flows fits the buffer, and does with the cap lifted', async () => {
    expect((await incast({ ...PAPER, inFlightPackets: 24 })).droppedPackets).toBe(0);
    expect((await incast({ ...PAPER, inFlightPackets: 1024 })).droppedPackets).toBeGreaterThan(0);
  });
});
