import type { ScenarioResult } from './result.js';
import { checkRunOptions, type RunOptions } from './run-options.js';
import { runScenario } from './run-scenario.js';
import { parseScenario, type ScenarioFile } from './schema.js';

/**
 * The result of a scenario: docs/scenarios.md lists its fields. The same file and seed give the same packets. Throws
 * ERR_ROCE_MALFORMED that lists every field at fault, ERR_ROCE_UNKNOWN_NAME for hosts and switches that do not exist.
 */
export async function simulate(file: ScenarioFile, options: RunOptions = {}): Promise<ScenarioResult> {
  checkRunOptions(options);
  return runScenario(parseScenario(file), options);
}
