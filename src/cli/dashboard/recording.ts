/** A simulation for the dashboard: a result that was kept, or a scenario that is run now. */

import { readFile } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';
import { z } from 'zod';
import { formatNs } from '../../core/units.js';
import type { ScenarioResult } from '../../sim/scenario/result.js';
import { runScenario } from '../../sim/scenario/run.js';
import type { DashboardSource } from '../../web/server.js';
import { CommandFailure, EXIT_FAILED, EXIT_INTERRUPTED } from '../exit.js';
import type { Output } from '../output.js';
import { loadScenario } from '../sim/load.js';

const numbers = z.array(z.number());

/** What the page reads of a result; the rest is passed on as it is. */
const resultSchema = z.looseObject({
  scenario: z.string(),
  title: z.string(),
  flows: z.array(z.looseObject({ id: z.number(), from: z.string(), to: z.string() })),
  queues: z.array(z.looseObject({ port: z.string(), meanBytes: z.number(), maxBytes: z.number() })),
  series: z.looseObject({
    timeNs: numbers.min(1),
    queueBytes: z.record(z.string(), numbers),
    rateBps: z.array(numbers),
    cnps: numbers,
    pauseFrames: numbers,
  }),
});

/** A file of `sim run --json`; or else a scenario, by name or file, which is run. */
export async function loadRecording(name: string, output: Output): Promise<ScenarioResult> {
  const kept = await keptResult(name);
  if (kept !== undefined) return kept;
  const scenario = await loadScenario({ name, set: [] });
  const progress = output.progress(100);
  const result = await runScenario(scenario, {
    clock: () => performance.now() / 1000,
    onProgress: async (done) => {
      progress.update(Math.round(done * 100), `${formatNs(done * scenario.duration)} of virtual time`);
      await setImmediate(); // Lets Ctrl-C through.
      return !output.io.interrupted.aborted;
    },
  }).finally(() => progress.stop());
  if (output.io.interrupted.aborted) throw new CommandFailure(EXIT_INTERRUPTED);
  return result;
}

async function keptResult(path: string): Promise<ScenarioResult | undefined> {
  const document: unknown = await readFile(path, 'utf8')
    .then(JSON.parse)
    .catch(() => undefined);
  if (document === null || typeof document !== 'object' || !('series' in document)) return undefined;
  const parsed = resultSchema.safeParse(document);
  if (parsed.success) return document as ScenarioResult;
  const { path: field, message } = parsed.error.issues[0];
  throw new CommandFailure(
    EXIT_FAILED,
    `${path} is no result of 'rocev2 sim run --json': ${field.join('.')}: ${message}`,
  );
}

/** A recording does not change, and has nothing to be set. */
export function recordingSource(result: ScenarioResult): DashboardSource {
  return {
    documents: { state: () => ({ kind: 'recording', result }) },
    subscribe: () => () => {},
    apply: undefined,
  };
}
