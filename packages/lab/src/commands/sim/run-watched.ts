import { setImmediate } from 'node:timers/promises';
import type { Output } from '@rocev2/command';
import { formatNs } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import type { ScenarioResult } from '../../sim/scenario/result.js';
import type { WatchedRunOptions } from '../../sim/scenario/run-options.js';
import { runScenario } from '../../sim/scenario/run-scenario.js';
import type { Scenario } from '../../sim/scenario/schema.js';
import { runOnCores } from './cores/run-on-cores.js';
import type { FrameCapture } from './frame-capture.js';
import type { SeriesFile } from './series-file.js';
import type { StationTrace } from './station-trace.js';

export interface RunWatchers {
  readonly capture?: FrameCapture | undefined;
  readonly trace?: StationTrace | undefined;
  readonly series?: SeriesFile | undefined;
}

export async function runWatched(
  scenario: Scenario,
  output: Output,
  { capture, trace, series }: RunWatchers = {},
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
      await setImmediate();
      return !output.io.interrupted.aborted;
    },
  }).finally(() => progress.stop());
}

export async function runOnCoresWatched(scenario: Scenario, output: Output): Promise<ScenarioResult> {
  const progress = output.progress(100);
  const run = runOnCores(scenario, {
    signal: output.io.interrupted,
    onProgress: (done) =>
      progress.update(Math.round(done * 100), `${formatNs(done * scenario.duration)} of virtual time`),
  });
  const { result, work } = await run.finally(() => progress.stop());
  const shares = work.map(({ seconds, waitedSeconds }) => `${Math.round((100 * waitedSeconds) / seconds)} %`);
  output.note(`${scenario.cores} cores; each waited for the others ${shares.join(', ')} of the time`);
  return result;
}
