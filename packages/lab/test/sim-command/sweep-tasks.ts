/** Runs of a small scenario. */

import { loadDocument } from '../../src/commands/sim/load.js';
import type { SweepTask } from '../../src/commands/sim/sweep/points.js';

/** `pfc-n2` without a warm-up, once for each override. */
export async function sweepTasks(...overrides: readonly string[]): Promise<SweepTask[]> {
  return await Promise.all(
    overrides.map(async (text) => ({
      point: Object.fromEntries([text.split('=')]),
      document: await loadDocument({ name: 'pfc-n2', set: ['warmup=0', text] }),
    })),
  );
}
