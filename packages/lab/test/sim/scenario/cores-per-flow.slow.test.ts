/** Divided runs whose queue pairs come with their flow and go after it: the document of the run in which all are there from the beginning, in one logical process. */

import { afterEach, describe, expect, test, vi } from 'vitest';
import { runDivided } from '../../../../../test/support/divided-run.js';
import { fourRacks } from '../../../../../test/support/four-racks.js';
import { divide } from '../../../src/sim/logical-process.js';
import { FlowConnections } from '../../../src/sim/scenario/flow-connections.js';
import { FlowEnds } from '../../../src/sim/scenario/flow-ends.js';
import type { ScenarioResult } from '../../../src/sim/scenario/result.js';
import { runScenario } from '../../../src/sim/scenario/run-scenario.js';
import { parseScenario, type ScenarioFile } from '../../../src/sim/scenario/schema.js';
import { topologyOf } from '../../../src/sim/scenario/topology-of.js';

/** Flows of many sizes between all hosts of four racks, with pauses and DCQCN. */
const FABRIC: ScenarioFile = {
  ...fourRacks(2),
  duration: '40us',
  flows: [
    {
      kind: 'poisson',
      from: 'h0..h7',
      to: 'h0..h7',
      load: 0.5,
      sizes: [
        [0, 0],
        [2_000, 50],
        [30_000, 100],
      ],
    },
  ],
};

/** Hosts of three racks send to one of the fourth, and it to them, again and again, under loss and copies; short queues, so that the quiet time is short. */
const LOSSY: ScenarioFile = {
  ...FABRIC,
  name: 'lossy',
  duration: '4ms',
  sample: '1ms',
  nic: { timeout: 4 },
  switch: { queuePackets: 16 },
  faults: 'random=0.003; duplicate=0.005',
  flows: [
    { kind: 'flows', from: 'h0..h4', to: 'h6', bytes: 40_001, message: '16KiB', each: 2, stagger: '100us' },
    { kind: 'flows', from: 'h6', to: 'h0..h4', bytes: 9_000, start: '50us', stagger: '150us' },
  ],
};

/** A port stands still for longer than the timeout: everything is sent again although nothing is lost, and the copies arrive when their flows are over. */
const LATE: ScenarioFile = {
  ...FABRIC,
  name: 'late',
  duration: '1ms',
  nic: { timeout: 3, recovery: 'go-back-n' },
  switch: { queuePackets: 2000 },
  flows: [{ kind: 'flows', from: 'h0..h5', to: 'h6', bytes: 30_000, stagger: '2us' }],
  happenings: [
    { do: 'block', at: '10us', switch: 'l3', port: 'h6' },
    { do: 'unblock', at: '100us', switch: 'l3', port: 'h6' },
  ],
};

afterEach(() => vi.restoreAllMocks());

/** The same to the last packet as with queue pairs from the start; `freed`: pairs have gone on both sides of a cut. */
async function expectSame(file: ScenarioFile, counts: readonly number[] = [4]): Promise<ScenarioResult> {
  const whole = await runScenario(parseScenario({ ...file, cores: 1 }));
  expect(await runScenario(parseScenario({ ...file, cores: 1, queuePairs: 'per-flow' }))).toEqual(whole);
  for (const cores of counts) {
    const scenario = parseScenario({ ...file, cores, queuePairs: 'per-flow' });
    const { result, crossings, connected } = await runDivided(scenario, cores);
    expect(crossings).toBeGreaterThan(50);
    expect(JSON.stringify(result)).toBe(JSON.stringify(whole));
    const processOf = divide(topologyOf(scenario.topology), cores);
    for (let logicalProcess = 0; logicalProcess < cores; logicalProcess++) {
      const counted = connected.map((processes) => processes[logicalProcess]);
      const all = result.flows.filter(({ from, to }) =>
        [from, to].some((host) => processOf.get(host) === logicalProcess),
      ).length;
      // Each part has had fewer at any time than flows have an end there, and some have gone.
      expect(Math.max(...counted)).toBeLessThan(all);
      expect(counted.some((count, i) => i > 0 && count < counted[i - 1])).toBe(true);
    }
  }
  return whole;
}

describe('queue pairs per flow change nothing in a divided run', () => {
  test('flows of many sizes with DCQCN and pauses', async () => {
    const { summary } = await expectSame(FABRIC, [4]);
    expect(summary.completions.count).toBeGreaterThan(10);
    expect(summary.cnps).toBeGreaterThan(0);
  });

  test.each(['go-back-n', 'selective-repeat', 'rack'])('losses and copies, recovery %s', async (recovery) => {
    const { summary } = await expectSame({ ...LOSSY, nic: { timeout: 4, recovery: recovery as never } });
    expect(summary.retransmittedPackets).toBeGreaterThan(0);
  });

  test.each(['send', 'read'] as const)('op %s', async (op) => {
    const flows = LOSSY.flows.map((entry) => ({ ...entry, op })) as ScenarioFile['flows'];
    await expectSame({ ...LOSSY, nic: { timeout: 4, recovery: 'selective-repeat' }, flows });
  });

  test('copies that arrive after the end of their flow', async () => {
    const whole = await runScenario(parseScenario({ ...LATE, cores: 1 }));
    expect(whole.summary).toMatchObject({ droppedPackets: 0, failedFlows: 0 });
    expect(whole.summary.retransmittedPackets).toBeGreaterThan(20);
    const scenario = parseScenario({ ...LATE, cores: 4, queuePairs: 'per-flow' });
    expect((await runDivided(scenario, 4)).result).toEqual(whole);
  });
});

describe('what both ends need to know', () => {
  test('a pair that goes although packets are under way is noticed', async () => {
    const { freeUnused } = FlowConnections.prototype;
    // As if the quiet time had passed, whatever is on the way.
    vi.spyOn(FlowConnections.prototype, 'freeUnused').mockImplementation(function (this: FlowConnections) {
      return freeUnused.call(this, Number.POSITIVE_INFINITY);
    });
    const early = runDivided(parseScenario({ ...LATE, cores: 4, queuePairs: 'per-flow' }), 4);
    await expect(early).rejects.toThrow(/whose flow is over/);
  });

  test('the end that receives hears of the completion from the other part, or its pairs stay', async () => {
    const { read } = FlowEnds.prototype;
    vi.spyOn(FlowEnds.prototype, 'read').mockImplementation(function (this: FlowEnds, flow, isSource) {
      return { ...read.call(this, flow, isSource), isCompleted: false };
    });
    const flows: ScenarioFile['flows'] = [{ kind: 'flows', from: 'h0..h1', to: 'h6', bytes: 3_000, each: 10 }];
    const { connected } = await runDivided(
      parseScenario({ ...FABRIC, duration: '200us', flows, cores: 4, queuePairs: 'per-flow' }),
      4,
    );
    expect(connected.at(-1)![0]).toBeLessThan(10);
    expect(connected.at(-1)![3]).toBe(20);
  });

  test('pairs of a part go as soon as the last packet of either end has arrived', async () => {
    const flows: ScenarioFile['flows'] = [
      { kind: 'flows', from: 'h0', to: 'h6', bytes: 3_000, each: 20, stagger: '8us' },
    ];
    const { connected } = await runDivided(
      parseScenario({ ...FABRIC, duration: '200us', flows, cores: 4, queuePairs: 'per-flow' }),
      4,
    );
    // A flow of 3 KB takes two round trips of some 8 us, a step 1 us.
    for (const [first, , , last] of connected) {
      expect(last).toBe(first);
      expect(first).toBeLessThanOrEqual(3);
    }
  });
});
