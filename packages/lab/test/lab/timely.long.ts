/** What becomes of the shares of two flows under round-trip control ("ECN or Delay", CoNEXT'16, figures 9, 10 and 12). */

import { expect, test } from 'vitest';
import { TIMELY_SCENARIOS } from '../../src/sim/scenarios/timely.js';
import { failuresOf, runBuiltIn } from './run-built-in.js';

test.each(TIMELY_SCENARIOS.map(({ name }) => name))('%s', async (name) => {
  expect(failuresOf(await runBuiltIn(name))).toEqual([]);
});

test('twenty flows from equal shares keep most of the link with a sample in each round trip, and none of it with one in 64 KB', async () => {
  const twenty = ['topology.hosts=21', 'flows[0].from=h0..h19', 'flows[0].to=h20', 'duration=100ms', 'warmup=50ms'];
  const efficiencyOf = async (...set: string[]) =>
    (await runBuiltIn('timely-n10', ...twenty, 'nic.cc.initialRateBps=500Mbps', ...set)).summary.efficiency;
  expect(await efficiencyOf()).toBeGreaterThan(0.75);
  expect(await efficiencyOf('nic.cc.segmentBytes=64KB')).toBeLessThan(0.1);
});
