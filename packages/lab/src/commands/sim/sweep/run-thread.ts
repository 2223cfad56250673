/** The thread of one run in a sweep: takes a {@link ThreadTask}, posts a ScenarioResult. */

import { parentPort, workerData } from 'node:worker_threads';
import { loadExtensions, nowNs } from 'rocev2/internal/driver';
import { runScenario } from '../../../sim/scenario/run.js';
import { parseScenario } from '../../../sim/scenario/schema.js';

/** The parameters of the thread. */
export interface ThreadTask {
  /** A scenario file. */
  readonly document: unknown;
  /** Modules to load before the scenario is read. */
  readonly extensions: readonly string[];
}

const { document, extensions } = workerData as ThreadTask;
await loadExtensions(extensions);
parentPort!.postMessage(await runScenario(parseScenario(document), { realNowNs: nowNs }));
