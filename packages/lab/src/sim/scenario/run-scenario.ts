/** The same scenario and seed give the same trace. */

import { NS_PER_S } from 'rocev2/internal/core';
import { factsOf } from './facts.js';
import type { ScenarioResult } from './result.js';
import type { WatchedRunOptions } from './run-options.js';
import { report } from './scenario-report.js';
import { ScenarioRun } from './scenario-run.js';
import type { Scenario } from './schema.js';

/** Where it ends is part of the result: at the end of a step, however often the caller is polled. */
export const STEPS = 200;
/** How often the caller is polled in a step: with many flows the first step takes seconds. */
const LOOKS_PER_STEP = 16;
const LOOKS = STEPS * LOOKS_PER_STEP;

export async function runScenario(scenario: Scenario, options: WatchedRunOptions = {}): Promise<ScenarioResult> {
  const { realNowNs = () => 0 } = options;
  const run = await ScenarioRun.prepare(scenario, options);
  const startedNs = realNowNs();
  run.start();
  for (let look = 1; look <= LOOKS; look++) {
    const untilNs = (scenario.duration * look) / LOOKS;
    await run.connectUntil(untilNs);
    options.onConnections?.(run.connections.count, run.events.nowNs);
    run.runUntil(untilNs);
    if ((await options.onProgress?.(look / LOOKS)) === false) break;
    if (look % LOOKS_PER_STEP === 0 && run.isOver) break;
  }
  return report({
    scenario,
    topology: run.topology,
    facts: factsOf(run),
    wallSeconds: (realNowNs() - startedNs) / NS_PER_S,
  });
}
