/** One connection over the eight paths of a network, beside ECMP, which is the negative twin: with one way a path that is bad, or shared, is bad for all of it. */

import { describe, expect, it } from 'vitest';
import type { RecoveryOptions } from '../../../../../src/retransmit/recovery-schemes.js';
import { runScenario } from '../../../src/sim/scenario/run-scenario.js';
import { parseScenario, type ScenarioFile } from '../../../src/sim/scenario/schema.js';

const ECMP = { name: 'multipath', choice: 0 } as const;
const SPRAY = { name: 'multipath', choice: 1 } as const;
const REPS = { name: 'multipath', choice: 2 } as const;
const BITMAP = { name: 'multipath', choice: 3 } as const;
const SPREADING = [
  ['spraying', SPRAY],
  ['REPS', REPS],
  ['the bitmap', BITMAP],
] as const;

const PAYLOAD_BPS = 97e9;

async function run(recovery: RecoveryOptions, more: Partial<ScenarioFile> = {}) {
  return runScenario(
    parseScenario({
      name: 'eight-paths',
      duration: '400us',
      topology: { kind: 'leaf-spine', leaves: 2, spines: 8, hostsPerLeaf: 4, rate: '100Gbps', delay: '1us' },
      nic: { mtu: 4096, recovery, timeout: 8, inflight: 125 },
      flows: [0, 1, 2, 3].map((i) => ({ kind: 'flows', from: `h${i}`, to: `h${i + 4}`, message: '256KiB' })),
      ...more,
    }),
    { realNowNs: () => 0 },
  );
}

/** One flow, whose path with ECMP is `spine`. */
const ONE_FLOW: Partial<ScenarioFile> = { flows: [{ kind: 'flows', from: 'h0', to: 'h4', message: '256KiB' }] };

async function busiestSpine(): Promise<string> {
  const { queues } = await run(ECMP, ONE_FLOW);
  const used = queues.filter(({ port, utilization }) => /^l0>p/.test(port) && utilization > 0.5);
  expect(used.map(({ port }) => port)).toHaveLength(1);
  return used[0].port.slice(3);
}

describe('four flows over eight paths', () => {
  it('share paths with ECMP', async () => {
    const { flows } = await run(ECMP);
    expect(Math.min(...flows.map(({ goodputBps }) => goodputBps))).toBeLessThan(0.55 * PAYLOAD_BPS);
  });

  it.each(SPREADING)('have their full rate with %s, and no packet is sent twice', async (_name, recovery) => {
    const { flows, summary, queues } = await run(recovery);
    for (const { goodputBps } of flows) expect(goodputBps).toBeGreaterThan(0.95 * PAYLOAD_BPS);
    expect(summary.retransmittedPackets).toBe(0);
    const loads = queues.filter(({ port }) => /^l0>p/.test(port)).map(({ utilization }) => utilization);
    expect(loads).toHaveLength(8);
    if (recovery === SPRAY) expect(Math.max(...loads)).toBeLessThan(2 * Math.min(...loads));
  });

  it.each(['send', 'read'] as const)('carry %s as well', async (op) => {
    const { flows } = await run(REPS, { flows: [{ kind: 'flows', from: 'h0', to: 'h4', op, message: '256KiB' }] });
    expect(flows[0].failure).toBeNull();
    expect(flows[0].goodputBps).toBeGreaterThan(0.8 * PAYLOAD_BPS);
  });
});

describe('a path that loses one packet in ten', () => {
  it.each([
    ['REPS', REPS, 0.6],
    ['the bitmap', BITMAP, 0.7],
  ] as const)('is used less by %s than in turn', async (_name, recovery, share) => {
    const faults = { faults: '*>p3:random=0.1' };
    const spray = await run(SPRAY, faults);
    const { flows, summary } = await run(recovery, faults);
    expect(summary.retransmittedPackets).toBeLessThan(share * spray.summary.retransmittedPackets);
    for (const { goodputBps } of flows) expect(goodputBps).toBeGreaterThan(0.9 * PAYLOAD_BPS);
  });
});

describe('a path that fails, and no switch learns of it', () => {
  const outage = (what: string): Partial<ScenarioFile> => ({
    ...ONE_FLOW,
    duration: '1500us',
    warmup: '300us',
    happenings: [{ do: 'fail', at: '100us', what, reroute: '10ms' }],
  });

  it('stops a flow with ECMP', async () => {
    const spine = await busiestSpine();
    const { flows } = await run(ECMP, outage(spine));
    expect(flows[0].goodputBps).toBe(0);
  });

  it.each([
    ['REPS', REPS],
    ['the bitmap', BITMAP],
  ] as const)('does not stop one with %s', async (_name, recovery) => {
    const spine = await busiestSpine();
    const { flows } = await run(recovery, outage(spine));
    expect(flows[0].failure).toBeNull();
    expect(flows[0].goodputBps).toBeGreaterThan(0.5 * PAYLOAD_BPS);
  });

  // REPS has no reason to: it explores only when nothing is left to recycle.
  it('is used again by the bitmap after its repair', async () => {
    const { queues, flows } = await run(BITMAP, {
      ...ONE_FLOW,
      duration: '3ms',
      warmup: '1500us',
      happenings: [
        { do: 'fail', at: '100us', what: 'p3', reroute: '10ms' },
        { do: 'repair', at: '600us', what: 'p3', reroute: '10ms' },
      ],
    });
    const again = queues.find(({ port }) => port === 'l0>p3');
    expect(again?.utilization).toBeGreaterThan(0.01);
    expect(flows[0].goodputBps).toBeGreaterThan(0.9 * PAYLOAD_BPS);
  });
});

describe('eight flows into one port with a short queue', () => {
  const incast = (more: Partial<ScenarioFile>) =>
    run(REPS, {
      duration: '3ms',
      topology: { kind: 'leaf-spine', leaves: 2, spines: 8, hostsPerLeaf: 8, rate: '100Gbps', delay: '1us' },
      flows: [{ kind: 'flows', from: 'h0..h7', to: 'h8', bytes: '256KiB' }],
      ...more,
    });
  const ECN = { kind: 'red', kminBytes: '100KB', kmaxBytes: '200KB', pmax: 1 } as const;

  it('lose packets where switches drop, and none where they cut', async () => {
    const dropping = await incast({ switch: { queuePackets: 64 } });
    expect(dropping.summary.droppedPackets).toBeGreaterThan(100);
    const cutting = await incast({ switch: { queuePackets: 64, trim: {} } });
    expect(cutting.summary.droppedPackets).toBe(0);
    expect(cutting.summary.retransmittedPackets).toBeGreaterThan(100);
    expect(cutting.summary.completions.count).toBe(8);
    expect(cutting.summary.completions.p99Ns).toBeLessThan(0.8 * dropping.summary.completions.p99Ns!);
  });

  it('send next to nothing twice with NSCC, and end when the port can have carried them', async () => {
    const { summary } = await incast({
      nic: {
        mtu: 4096,
        recovery: REPS,
        timeout: 8,
        inflight: 125,
        cc: { name: 'nscc', packetBytes: 4096, baseRttNs: '9us', targetRtts: 0.75 },
      },
      switch: { queuePackets: 64, trim: {}, ecn: ECN },
    });
    expect(summary.droppedPackets).toBe(0);
    expect(summary.retransmittedPackets).toBeLessThan(0.7 * ((8 * 256) / 4));
    const ideal = (8 * 256 * 1024 * 8e9) / PAYLOAD_BPS;
    expect(summary.completions.p99Ns).toBeLessThan(1.1 * ideal);
  });
});
