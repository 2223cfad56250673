/** Where `rocev2 sim` finds scenarios: built in by name, or in a JSON file. */

import { readFile } from 'node:fs/promises';
import { override } from '../../sim/scenario/overrides.js';
import { parseScenario, type Scenario } from '../../sim/scenario/schema.js';
import { BUILT_IN_SCENARIOS } from '../../sim/scenarios/index.js';
import { CommandFailure, EXIT_USAGE } from '../exit.js';

/** Which scenario, and what to change in it. */
export interface ScenarioChoice {
  /** The name of a built-in scenario, or the path of a file. */
  readonly name: string;
  /** `path=value`. */
  readonly set: readonly string[];
}

/** The scenario with the overrides. Throws for what is neither a built-in name nor a readable file, and for a file that is wrong. */
export async function loadScenario({ name, set }: ScenarioChoice): Promise<Scenario> {
  const file = BUILT_IN_SCENARIOS.find((scenario) => scenario.name === name) ?? (await readJson(name));
  return parseScenario(override(file, set));
}

async function readJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8'));
  } catch (cause) {
    const hint =
      path.includes('.') || path.includes('/') ? '' : ": no such scenario, see 'rocev2 sim list'; as a file,";
    throw new CommandFailure(EXIT_USAGE, `${path}${hint} ${(cause as Error).message}`, { cause });
  }
}
