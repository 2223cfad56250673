import { plainWords } from '@rocev2/command/schema';
import { z } from 'zod';
import type { ScenarioResult } from '../../sim/scenario/result.js';

const numbers = z.array(z.number());
const completions = z.looseObject({ count: z.number(), unfinished: z.number() });

const resultSchema = z.looseObject({
  scenario: z.string(),
  title: z.string(),
  seed: z.number(),
  summary: z.looseObject({ goodputBps: z.number(), jain: z.number(), completions, smallCompletions: completions }),
  flows: z.array(z.looseObject({ id: z.number(), from: z.string(), to: z.string(), goodputBps: z.number() })),
  queues: z.array(z.looseObject({ port: z.string(), meanBytes: z.number(), maxBytes: z.number() })),
  buffers: z.array(z.looseObject({ switch: z.string(), sharedBytes: z.number(), headroomMaxBytes: z.number() })),
  assertions: z.array(z.object({ name: z.string(), ok: z.boolean(), detail: z.string() })),
  series: z.looseObject({
    timeNs: numbers.min(1),
    queueBytes: z.record(z.string(), numbers),
    rateBps: z.array(numbers),
    receivedBps: z.record(z.string(), numbers),
    cnps: numbers,
    pauseFrames: numbers,
  }),
});

export function isScenarioResult(document: unknown): document is ScenarioResult {
  return resultSchema.safeParse(document).success;
}

export function resultProblem(document: unknown): string | undefined {
  const issue = resultSchema.safeParse(document).error?.issues[0];
  return issue && `${issue.path.join('.')}: ${plainWords(issue)}`;
}
