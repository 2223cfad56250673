/** What Azure reports, and loss recovery under incast: every scenario with its assertions, and what only shows when two are compared. */

import { describe, expect, test } from 'vitest';
import { AZURE_SCENARIOS } from '../../src/sim/scenarios/azure.js';
import { RECOVERY_SCENARIOS } from '../../src/sim/scenarios/recovery.js';
import { failuresOf, runBuiltIn } from './run-built-in.js';

test.each([...AZURE_SCENARIOS, ...RECOVERY_SCENARIOS].map(({ name, title }) => [name, title]))(
  '%s: %s',
  async (name) => {
    expect(failuresOf(await runBuiltIn(name))).toEqual([]);
  },
);

describe('incast of eight on shallow buffers', () => {
  test('selective repeat without pauses comes close to pauses, go-back-N without pauses does not', async () => {
    const efficiencyOf = async (name: string) => (await runBuiltIn(name)).summary.efficiency;
    const lossless = await efficiencyOf('incast-go-back-n-pfc');
    expect(await efficiencyOf('incast-selective-repeat')).toBeGreaterThan(0.9 * lossless);
    expect(await efficiencyOf('incast-go-back-n')).toBeLessThan(0.8 * lossless);
  });
});
