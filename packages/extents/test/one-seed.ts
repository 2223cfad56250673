/** One seed of a simulation, which somebody names to look at it. */

import process from 'node:process';
import { describe, expect, it } from 'vitest';

/** A test of the seed that the environment variable names, where it names one. It prints what the run has met. */
export function describeOneSeed(
  variable: 'EXTENT_SEED' | 'DISK_SEED',
  run: (seed: number) => Promise<{ readonly problems: readonly string[] }>,
  title = 'one seed',
): void {
  const seed = process.env[variable];
  describe.runIf(seed !== undefined)(title, () => {
    it(`${seed} keeps what was promised`, async () => {
      const { problems, ...met } = await run(Number(seed));
      process.stdout.write(`${JSON.stringify(met, undefined, 2)}\n`);
      expect(problems).toEqual([]);
    });
  });
}
