/** The worker thread of one run in a sweep: takes a {@link SweepRun}, posts a ScenarioResult. */

import { parentPort, workerData } from 'node:worker_threads';
import { loadExtensions } from '../../driver/extensions.js';
import { nowNs } from '../../driver/system-clock.js';
import { runScenario } from '../../sim/scenario/run.js';
import { loadScenario, type ScenarioChoice } from './load.js';

/** The parameters of the thread. */
export interface SweepRun {
  /** The scenario, with the overrides of this run. */
  readonly choice: ScenarioChoice;
  /** Modules to load before the scenario is read. */
  readonly extensions: readonly string[];
}

const { choice, extensions } = workerData as SweepRun;
await loadExtensions(extensions);
const scenario = await loadScenario(choice);
parentPort!.postMessage(await runScenario(scenario, { realNowNs: nowNs }));
