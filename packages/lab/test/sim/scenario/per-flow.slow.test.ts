/** Queue pairs that come with their flow and go after it: the run is the one in which all are there from the beginning. */

import { describe, expect, test } from 'vitest';
import { recoveryNames } from '../../../../../src/retransmit/recovery-schemes.js';
import { repeated } from '../../../../../test/support/repetitions.js';
import { FlowConnections } from '../../../src/sim/scenario/flow-connections.js';
import { packetLifetimeNs } from '../../../src/sim/scenario/packet-lifetime.js';
import type { FlowResult, ScenarioResult } from '../../../src/sim/scenario/result.js';
import { runScenario } from '../../../src/sim/scenario/run-scenario.js';
import { parseScenario, type ScenarioFile } from '../../../src/sim/scenario/schema.js';
import { topologyOf } from '../../../src/sim/scenario/topology-of.js';

type Fields = Partial<ScenarioFile>;

/** Three hosts send to one again and again, two flows between each two of them, under loss and reordering; small memory, so that the quiet time is short. */
const LOSSY: ScenarioFile = {
  name: 'per-flow',
  seed: 5,
  duration: '6ms',
  topology: { kind: 'star', hosts: 4, rate: '10Gbps' },
  payload: 'virtual',
  nic: { timeout: 4 },
  switch: { queuePackets: 32 },
  faults: 'random=0.003; reorder=0.005,5; duplicate=0.005',
  flows: [
    { kind: 'flows', from: 'h0..h2', to: 'h3', bytes: 60_001, message: '16KiB', each: 2, stagger: '300us' },
    { kind: 'flows', from: 'h3', to: 'h0..h2', bytes: 9_000, start: '150us', stagger: '700us' },
  ],
};

/** Web-search flows over two tiers, with pauses and DCQCN. */
const FABRIC: ScenarioFile = {
  name: 'fabric',
  duration: '300us',
  topology: { kind: 'leaf-spine', leaves: 3, spines: 2, hostsPerLeaf: 3, rate: '40Gbps' },
  payload: 'virtual',
  nic: { cc: { name: 'dcqcn', linkRateBps: '40Gbps' }, timeout: 14 },
  switch: {
    pfc: { priorities: [0] },
    buffer: { totalBytes: '2MB' },
    ecn: { kind: 'red', kminBytes: 40_000, kmaxBytes: 160_000, pmax: 0.2 },
  },
  flows: [{ kind: 'poisson', from: 'h0..h8', to: 'h0..h8', load: 0.5, sizes: 'fb-hadoop' }],
};

interface Run {
  readonly result: ScenarioResult;
  /** Flows with queue pairs before each step, and those that have begun and not ended then or within the quiet time before. */
  readonly connected: ReadonlyArray<{ readonly count: number; readonly nowNs: number }>;
}

async function run(file: ScenarioFile, queuePairs: 'at-start' | 'per-flow'): Promise<Run> {
  const connected: Array<{ count: number; nowNs: number }> = [];
  const onConnections = (count: number, nowNs: number) => connected.push({ count, nowNs });
  return { result: await runScenario(parseScenario({ ...file, queuePairs }), { onConnections }), connected };
}

/** The same to the last packet, although queue pairs were freed in the middle of it. */
async function expectSame(file: ScenarioFile): Promise<Run> {
  const whole = await run(file, 'at-start');
  const perFlow = await run(file, 'per-flow');
  expect(perFlow.result).toEqual(whole.result);
  const most = Math.max(...perFlow.connected.map(({ count }) => count));
  expect(most).toBeLessThan(whole.result.flows.length);
  expect(whole.connected.every(({ count }) => count === whole.result.flows.length)).toBe(true);
  return perFlow;
}

describe('queue pairs per flow change nothing in a run', () => {
  test.each(recoveryNames())('recovery %s, under loss, copies and packets out of order', async (recovery) => {
    await expectSame({ ...LOSSY, nic: { timeout: 4, recovery } });
  });

  test.each(['send', 'read'] as const)('op %s', async (op) => {
    const flows: Fields['flows'] = [
      { kind: 'flows', from: 'h0..h2', to: 'h3', op, bytes: 60_001, message: '16KiB', each: 2, stagger: '300us' },
    ];
    await expectSame({ ...LOSSY, nic: { timeout: 4, recovery: 'selective-repeat' }, flows });
  });

  test.each(repeated(2, ['rccc', 'hpcc', 'dcqcn', 'timely', 'swift']))('rate control %s', async (name) => {
    const { ecn } = FABRIC.switch!;
    await expectSame({
      ...FABRIC,
      nic: { cc: { name, linkRateBps: '40Gbps' } as never, timeout: 14 },
      switch: { int: {}, ecn: ecn!, pfc: { priorities: [0] }, buffer: { totalBytes: '2MB' } },
    });
  });

  test('windows that are shared with flows that have not begun, and with those that are over', async () => {
    // With 24 packets each of nine flows has two. With 32 they would have three, and take turns of 16 instead.
    const flows: Fields['flows'] = [
      { kind: 'flows', from: 'h0', to: 'h1', bytes: 40_000, message: '16KiB', each: 9, stagger: '100us' },
    ];
    await expectSame({ ...FABRIC, duration: '1ms', nic: { inflight: 32 }, flows });
    await expectSame({ ...FABRIC, duration: '1ms', nic: { inflight: 24 }, flows });
  });

  test('losses in full queues, without fault rules', async () => {
    const flows: Fields['flows'] = [
      { kind: 'incast', from: 'h0..h7', to: 'h8', fanIn: 8, bytes: 30_000, every: '200us', until: '500us' },
    ];
    const { result } = await expectSame({
      ...FABRIC,
      duration: '3ms',
      nic: { timeout: 4 },
      switch: { queuePackets: 16 },
      flows,
    });
    expect(result.summary.droppedPackets).toBeGreaterThan(0);
  });
});

test('queue pairs are there only for flows that run, and for a quiet time after them', async () => {
  const { result, connected } = await expectSame(FABRIC);
  expect(result.summary.droppedPackets).toBe(0);
  const stepNs = 300e3 / 3200;
  for (const { count, nowNs } of connected) {
    const alive = result.flows.filter(
      ({ startNs, completionNs }) =>
        startNs <= nowNs + stepNs && (completionNs === null || startNs + completionNs >= nowNs - 20_000),
    );
    expect(count).toBeLessThanOrEqual(alive.length);
  }
  expect(connected.at(-1)!.count).toBeLessThan(result.flows.length / 2);
});

test('where packets were lost, queue pairs stay for the quiet time', async () => {
  const scenario = parseScenario(LOSSY);
  const lifetimeNs = packetLifetimeNs(scenario, topologyOf(scenario.topology));
  // Two links, 32 frames of 1,224 bytes at 10 Gb/s and 1 us each, twice.
  expect(lifetimeNs).toBeCloseTo(2 * 2 * (32 * 1224 * 0.8 + 1000), 6);
  const { result, connected } = await run(LOSSY, 'per-flow');
  let freed = 0;
  for (const { count, nowNs } of connected) {
    // Copies of its packets may still have moved after its end.
    const isOver = ({ startNs, completionNs }: FlowResult) =>
      completionNs !== null && startNs + completionNs < nowNs - 2 * lifetimeNs;
    const over = result.flows.filter(isOver).length;
    expect(count).toBeLessThanOrEqual(result.flows.length - over);
    freed = Math.max(freed, over);
  }
  expect(freed).toBeGreaterThan(2);
});

/** A port stands still for longer than the timeout: everything is sent again although nothing is lost, and the copies arrive when their flows are over. */
const LATE: ScenarioFile = {
  ...FABRIC,
  name: 'late',
  duration: '1ms',
  nic: { timeout: 3, recovery: 'go-back-n' },
  switch: { queuePackets: 2000 },
  flows: [{ kind: 'flows', from: 'h0..h7', to: 'h8', bytes: 30_000, stagger: '2us' }],
  happenings: [
    { do: 'block', at: '10us', switch: 'l2', port: 'h8' },
    { do: 'unblock', at: '100us', switch: 'l2', port: 'h8' },
  ],
};

test('packets that come after the end of their flow are answered, as if the queue pairs were there all the time', async () => {
  const { result } = await run(LATE, 'at-start');
  expect(result.summary).toMatchObject({ droppedPackets: 0, failedFlows: 0 });
  expect(result.summary.retransmittedPackets).toBeGreaterThan(20);
  expect((await run(LATE, 'per-flow')).result).toEqual(result);
});

test('a queue pair that goes too early is noticed: somebody would have answered', async () => {
  const { prototype } = FlowConnections;
  const original = prototype.freeUnused;
  // As if the quiet time had passed, whatever is on the way.
  prototype.freeUnused = function (this: FlowConnections) {
    return original.call(this, Number.POSITIVE_INFINITY);
  };
  try {
    const early = run(LATE, 'per-flow');
    await expect(early).rejects.toThrow(/whose flow is over.*set queuePairs to at-start/s);
  } finally {
    prototype.freeUnused = original;
  }
});
