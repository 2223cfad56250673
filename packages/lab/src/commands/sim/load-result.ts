import { readFile } from 'node:fs/promises';
import { CommandFailure, EXIT_FAILED, type Output } from '@rocev2/command';
import type { ScenarioResult } from '../../sim/scenario/result.js';
import { loadScenario } from './load.js';
import { isScenarioResult, resultProblem } from './result-schema.js';
import { runWatched } from './run-watched.js';

export async function loadResult(name: string, output: Output): Promise<ScenarioResult> {
  const kept = await keptResult(name);
  if (kept !== undefined) return kept;
  const scenario = await loadScenario({ name, set: [] });
  const result = await runWatched(scenario, output);
  output.throwIfInterrupted();
  return result;
}

async function keptResult(path: string): Promise<ScenarioResult | undefined> {
  const document: unknown = await readFile(path, 'utf8')
    .then(JSON.parse)
    .catch(() => undefined);
  if (document === null || typeof document !== 'object' || !('series' in document)) return undefined;
  if (isScenarioResult(document)) return document;
  const problem = resultProblem(document);
  throw new CommandFailure(EXIT_FAILED, `${path} is not a result of 'rocev2 sim run --json': ${problem}`);
}
