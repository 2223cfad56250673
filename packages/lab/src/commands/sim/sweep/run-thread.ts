import { parentPort, workerData } from 'node:worker_threads';
import { loadExtensions, nowNs } from 'rocev2/internal/driver';
import { runScenario } from '../../../sim/scenario/run-scenario.js';
import { parseScenario } from '../../../sim/scenario/schema.js';

export interface ThreadTask {
  readonly document: unknown;
  readonly extensions: readonly string[];
}

const { document, extensions } = workerData as ThreadTask;
await loadExtensions(extensions);
parentPort!.postMessage(await runScenario(parseScenario(document), { realNowNs: nowNs }));
