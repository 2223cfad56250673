/** Runs a built-in scenario, as `rocev2 sim run NAME --set ...` does. */

import { performance } from 'node:perf_hooks';
import { override } from '../../src/sim/scenario/overrides.js';
import type { QueueResult, ScenarioResult } from '../../src/sim/scenario/result.js';
import { runScenario } from '../../src/sim/scenario/run-scenario.js';
import { parseScenario } from '../../src/sim/scenario/schema.js';
import { BUILT_IN_SCENARIOS } from '../../src/sim/scenarios/index.js';

const runs = new Map<string, Promise<ScenarioResult>>();

/** The same run again is the same promise. */
export function runBuiltIn(name: string, ...set: readonly string[]): Promise<ScenarioResult> {
  const key = [name, ...set].join(' ');
  const result = runs.get(key) ?? run(name, set);
  runs.set(key, result);
  return result;
}

function run(name: string, set: readonly string[]): Promise<ScenarioResult> {
  const file = BUILT_IN_SCENARIOS.find((scenario) => scenario.name === name);
  if (file === undefined) throw new Error(`there is no scenario ${name}`);
  return runScenario(parseScenario(override(file, set)), { realNowNs: () => performance.now() * 1e6 });
}

export function queueOf(result: ScenarioResult, port: string): QueueResult {
  return result.queues.find((queue) => queue.port === port)!;
}

/** The assertions of the scenario that do not hold. */
export function failuresOf({ assertions }: ScenarioResult): string[] {
  return assertions.filter(({ ok }) => !ok).map(({ name, detail }) => `${name}: ${detail}`);
}
