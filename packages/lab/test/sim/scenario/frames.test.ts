/** Frames keep one slot of the network's pool from host to host: whatever happens to them, it comes back. */

import { expect, test } from 'vitest';
import { ScenarioRun } from '../../../src/sim/scenario/scenario-run.js';
import { parseScenario, type ScenarioFile } from '../../../src/sim/scenario/schema.js';

const FLOWS: ScenarioFile = {
  name: 'frames',
  duration: '20ms',
  topology: { kind: 'leaf-spine', leaves: 2, spines: 2, hostsPerLeaf: 2, rate: '10Gbps' },
  nic: { timeout: 4, recovery: 'selective-repeat' },
  flows: [{ kind: 'flows', from: 'h0..h2', to: 'h3', bytes: 150_001, message: '16KiB' }],
};

async function runOf(fields: Partial<ScenarioFile>): Promise<ScenarioRun> {
  const run = await ScenarioRun.prepare(parseScenario({ ...FLOWS, ...fields }));
  run.start();
  return run;
}

test.each<readonly [what: string, fields: Partial<ScenarioFile>]>([
  ['losses, copies and late packets', { faults: 'random=0.004; reorder=0.01,5; duplicate=0.01; every=90,delay=3us' }],
  ['damaged packets', { faults: 'corrupt=0.01' }],
  [
    'pauses, and a NIC that loses packets',
    {
      switch: { pfc: { priorities: [0] }, buffer: { totalBytes: 100_000 } },
      pipelines: [{ hosts: 'h3', contexts: 1, hit: '50ns', miss: '2us', buffer: 5_000 }],
    },
  ],
  ['full queues', { switch: { queuePackets: 8 } }],
  ['trimmed packets', { nic: { timeout: 8, recovery: 'multipath' }, switch: { trim: {}, queuePackets: 8 } }],
  [
    'a link that is taken out of service',
    {
      happenings: [
        { do: 'fail', at: '20us', what: 'l0-p0' },
        { do: 'repair', at: '200us', what: 'l0-p0' },
      ],
    },
  ],
])('after %s no frame is left', async (_what, fields) => {
  const run = await runOf(fields);
  run.runUntil(50_000);
  expect(run.network.pool.used).toBeGreaterThan(0);
  run.runUntil(run.scenario.duration);
  expect(run.isOver).toBe(true);
  const heldBack = [...run.network.switches.values()].reduce((sum, { engine }) => sum + engine.bufferedPackets, 0);
  expect(run.network.pool.used).toBe(heldBack);
  expect(heldBack).toBeLessThan(run.scenario.faults === undefined ? 1 : 3);
});
