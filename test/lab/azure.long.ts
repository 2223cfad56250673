/** What Azure reports, and loss recovery under incast: every scenario with its assertions, and what only shows when two are compared. */

import { describe, expect, test } from 'vitest';
import { AZURE_SCENARIOS } from '../../src/sim/scenarios/azure.js';
import { CHUNK_SCENARIOS } from '../../src/sim/scenarios/chunks.js';
import { INCIDENT_SCENARIOS } from '../../src/sim/scenarios/incidents.js';
import { RECOVERY_SCENARIOS } from '../../src/sim/scenarios/recovery.js';
import { casesOfRound } from '../support/rounds.js';
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
