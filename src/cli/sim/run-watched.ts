/** Runs a scenario with progress on stderr, until it is done or Ctrl-C is pressed. */

import { setImmediate } from 'node:timers/promises';
import { formatNs } from '../../core/units.js';
import { nowNs } from '../../driver/system-clock.js';
import type { ScenarioResult } from '../../sim/scenario/result.js';
import { runScenario } from '../../sim/scenario/run.js';
import type { Scenario } from '../../sim/scenario/schema.js';
import type { Output } from '../output.js';
import type { FrameCapture } from './frame-capture.js';

/** The result; after Ctrl-C, that of the time until then. */
export async function runWatched(scenario: Scenario, output: Output, capture?: FrameCapture): Promise<ScenarioResult> {
  const progress = output.progress(100);
  return await runScenario(scenario, {
    realNowNs: nowNs,
    ...(capture !== undefined && { observer: capture }),
    onProgress: async (done) => {
      progress.update(Math.round(done * 100), `${formatNs(done * scenario.duration)} of virtual time`);
      await capture?.flush();
      await setImmediate(); // Lets Ctrl-C through.
      return !output.io.interrupted.aborted;
    },
  }).finally(() => progress.stop());
}
