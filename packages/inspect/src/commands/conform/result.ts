import { readJsonFile } from '@rocev2/command';
import { RoceError } from 'rocev2/internal/core';
import { z } from 'zod';
import type { Via } from '../../conform/peer.js';
import type { CaseResult, CaseVerdict, TargetFacts } from '../../conform/tester.js';

export const VERDICTS: readonly CaseVerdict[] = ['failed', 'cannot tell', 'differs', 'passed', 'not supported'];

/** The fields of `conform run --json`. */
export interface ConformRunResult extends TargetFacts {
  /** The target, as named on the command line. */
  readonly target: string;
  /** What `--name` calls it; else the target. */
  readonly name: string;
  /** How queue pairs were had. */
  readonly via: Via;
  /** Address of the target. */
  readonly remote: string;
  /** Address of the tester. */
  readonly local: string;
  /** rdma_cm port, or TCP port of the agent. */
  readonly port: number;
  /** Path MTU of the connections, in bytes. */
  readonly mtu: number;
  /** How many cases have which verdict. */
  readonly counts: Readonly<Record<CaseVerdict, number>>;
  /** Packets that the tester sent. */
  readonly packetsSent: number;
  /** Packets of the target that were malformed or had a wrong ICRC. They were ignored. */
  readonly unsoundAnswers: number;
  /** In the order in which they were run. */
  readonly cases: readonly CaseResult[];
}

export function countVerdicts(cases: readonly CaseResult[]): Record<CaseVerdict, number> {
  const counts = { passed: 0, failed: 0, differs: 0, 'cannot tell': 0, 'not supported': 0 };
  for (const { verdict } of cases) counts[verdict]++;
  return counts;
}

export function verdictOn(rule: number, cases: readonly CaseResult[]): CaseVerdict | undefined {
  const found = new Set(cases.filter(({ rules }) => rules.includes(rule)).map(({ verdict }) => verdict));
  return VERDICTS.find((verdict) => found.has(verdict));
}

const verdict = z.enum(['failed', 'cannot tell', 'differs', 'passed', 'not supported']);
const resultSchema = z.looseObject({
  schema: z.literal('conform-run'),
  target: z.string(),
  name: z.string(),
  via: z.enum(['cm', 'perftest', 'agent']),
  remote: z.string(),
  local: z.string(),
  port: z.number(),
  mtu: z.number(),
  isTarget: z.boolean(),
  depth: z.number(),
  counts: z.record(verdict, z.number()),
  packetsSent: z.number(),
  unsoundAnswers: z.number(),
  cases: z.array(
    z.looseObject({
      name: z.string(),
      rules: z.array(z.number()).min(1),
      severity: z.enum(['must', 'should', 'information']),
      about: z.string(),
      verdict,
      text: z.string().nullable(),
      attempts: z.number(),
      milliseconds: z.number(),
      steps: z.array(z.string()),
      packets: z.array(
        z.object({ number: z.number(), timeNs: z.number(), hex: z.string().regex(/^(?:[0-9a-f]{2})+$/) }),
      ),
    }),
  ),
});

export function parseResult(document: unknown, path: string): ConformRunResult {
  const parsed = resultSchema.safeParse(document);
  if (parsed.success) return parsed.data;
  throw new RoceError(
    'ERR_ROCE_MALFORMED',
    `${path} is not a result of rocev2 conform run: ${z.prettifyError(parsed.error).split('\n')[0]}`,
    'make it by rocev2 conform run HOST --results FILE',
  );
}

export async function readResult(path: string): Promise<ConformRunResult> {
  return parseResult(await readJsonFile(path), path);
}
