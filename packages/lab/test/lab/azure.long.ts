/** What Azure reports, and loss recovery under incast: every scenario with its assertions, and what only shows when two are compared. */

import { describe, expect, test } from 'vitest';
import { casesOfRound } from '../../../../test/support/rounds.js';
import { override } from '../../src/sim/scenario/overrides.js';
import { parseScenario } from '../../src/sim/scenario/schema.js';
import { AZURE_SCENARIOS } from '../../src/sim/scenarios/azure.js';
import { CHUNK_SCENARIOS } from '../../src/sim/scenarios/chunks.js';
import { INCIDENT_SCENARIOS } from '../../src/sim/scenarios/incidents.js';
import { RECOVERY_SCENARIOS } from '../../src/sim/scenarios/recovery.js';
import { quantile } from '../../src/sim/statistics.js';
import { runTcp } from '../../src/sim/tcp/run-tcp.js';
import { failuresOf, runBuiltIn } from './run-built-in.js';

const SCENARIOS = [AZURE_SCENARIOS, CHUNK_SCENARIOS, RECOVERY_SCENARIOS, INCIDENT_SCENARIOS].flatMap((ofOneKind) =>
  casesOfRound(ofOneKind),
);

test.each(SCENARIOS.map(({ name, title }) => [name, title]))('%s: %s', async (name) => {
  expect(failuresOf(await runBuiltIn(name))).toEqual([]);
});

describe('incast of eight on shallow buffers', () => {
  test('selective repeat without pauses comes close to pauses, go-back-N without pauses does not', async () => {
    const efficiencyOf = async (name: string) => (await runBuiltIn(name)).summary.efficiency;
    const lossless = await efficiencyOf('incast-go-back-n-pfc');
    expect(await efficiencyOf('incast-selective-repeat')).toBeGreaterThan(0.9 * lossless);
    expect(await efficiencyOf('incast-go-back-n')).toBeLessThan(0.8 * lossless);
  });
});

test('chunks, one at a time, shorten the tail of small messages to less than half, and cost the large ones nothing', async () => {
  const whole = (await runBuiltIn('chunks-off')).summary;
  const cut = (await runBuiltIn('chunks-on')).summary;
  expect(cut.smallCompletions.p99Ns!).toBeLessThan(whole.smallCompletions.p99Ns! / 2);
  expect(cut.completions.p99Ns!).toBeLessThan(1.05 * whole.completions.p99Ns!);
  expect(cut.queueMeanBytes).toBeLessThan(whole.queueMeanBytes / 2);
});

describe('messages of a service that come together', () => {
  const overTcp = (...set: string[]) => {
    const file = INCIDENT_SCENARIOS.find(({ name }) => name === 'service-latency')!;
    const { flows, droppedPackets } = runTcp(parseScenario(override(file, set)));
    return { times: Float64Array.from(flows, ({ completionNs }) => completionNs!).sort(), droppedPackets };
  };

  test('over TCP wait for a timer where packets are lost, and over RDMA do not; without losses both are as fast', async () => {
    const rdma = (await runBuiltIn('service-latency')).flows.map(({ completionNs }) => completionNs!);
    const tcp = overTcp();
    expect(tcp.droppedPackets).toBeGreaterThan(0);
    expect(quantile(tcp.times, 1)).toBeGreaterThan(10e6);
    expect(Math.max(...rdma)).toBeLessThan(200_000);
    const roomy = overTcp('switch.buffer.lossyAlpha=8');
    expect(roomy.droppedPackets).toBe(0);
    expect(quantile(roomy.times, 1)).toBeLessThan(1.1 * Math.max(...rdma));
  });
});
