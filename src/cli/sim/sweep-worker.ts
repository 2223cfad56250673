/** The worker thread of one run in a sweep: takes a ScenarioChoice, posts a ScenarioResult. */

import { parentPort, workerData } from 'node:worker_threads';
import { nowNs } from '../../driver/system-clock.js';
import { runScenario } from '../../sim/scenario/run.js';
import { loadScenario, type ScenarioChoice } from './load.js';

const scenario = await loadScenario(workerData as ScenarioChoice);
parentPort!.postMessage(await runScenario(scenario, { realNowNs: nowNs }));
