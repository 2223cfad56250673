/** Runs a scenario with progress on stderr, until it is done or Ctrl-C is pressed. */

import { setImmediate } from 'node:timers/promises';
import { formatNs } from '../../core/units.js';
import { nowNs } from '../../driver/system-clock.js';
import type { ScenarioResult } from '../../sim/scenario/result.js';
import { runScenario, type WatchedRunOptions } from '../../sim/scenario/run.js';
import type { Scenario } from '../../sim/scenario/schema.js';
import type { Output } from '../output.js';
import type { FrameCapture } from './frame-capture.js';
import type { SeriesFile } from './series-file.js';
import type { StationTrace } from './station-trace.js';

/** Who watches a run, and writes files. */
export interface Watchers {
  /** Takes frames. */
  readonly capture?: FrameCapture | undefined;
  /** Takes events of a NIC. */
  readonly trace?: StationTrace | undefined;
  /** Takes samples of rate controls. */
  readonly series?: SeriesFile | undefined;
}

/** The result; after Ctrl-C, that of the time until then. */
export async function runWatched(
  scenario: Scenario,
  output: Output,
  { capture, trace, series }: Watchers = {},
): Promise<ScenarioResult> {
  const progress = output.progress(100);
  const watchers: WatchedRunOptions = {
    ...(capture !== undefined && { observer: capture }),
    ...(trace !== undefined && { station: trace }),
    ...(series !== undefined && { onControl: series.add }),
  };
  return await runScenario(scenario, {
    realNowNs: nowNs,
    ...watchers,
    onProgress: async (done) => {
      progress.update(Math.round(done * 100), `${formatNs(done * scenario.duration)} of virtual time`);
      await capture?.flush();
      await trace?.flush();
      await setImmediate(); // Lets Ctrl-C through.
      return !output.io.interrupted.aborted;
    },
  }).finally(() => progress.stop());
}
