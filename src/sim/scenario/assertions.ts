/** Assertions of a scenario: a number of the result, found by a path, against limits. */

import { RoceError } from '../../core/errors.js';
import type { AssertionResult, ScenarioResult } from './result.js';
import type { Assertion } from './schema.js';

/** Throws ERR_ROCE_INVALID_ARGUMENT for a path that leads to no number. */
export function check(
  { name, value, min, max }: Assertion,
  result: Omit<ScenarioResult, 'assertions'>,
): AssertionResult {
  const found = numberAt(result, value);
  const ok = found >= (min ?? Number.NEGATIVE_INFINITY) && found <= (max ?? Number.POSITIVE_INFINITY);
  const limits = [...(min === undefined ? [] : [`at least ${min}`]), ...(max === undefined ? [] : [`at most ${max}`])];
  return { name, ok, detail: `${value} is ${Number(found.toPrecision(6))}, should be ${limits.join(' and ')}` };
}

/**
 * The number at a path like `summary.jain`, `flows[0].goodputBps` or `queues[s0>h2].meanBytes`: in brackets a flow's id or a queue's port.
 */
export function numberAt(result: Omit<ScenarioResult, 'assertions'>, path: string): number {
  let value: unknown = result;
  for (const step of path.split(/[.[]/)) value = follow(value, step.replace(/\]$/, ''));
  if (typeof value === 'number') return value;
  throw new RoceError(
    'ERR_ROCE_INVALID_ARGUMENT',
    `the result has no number at '${path}'`,
    'write for example summary.jain, flows[0].goodputBps or queues[s0>h2].meanBytes',
  );
}

function follow(value: unknown, step: string): unknown {
  if (Array.isArray(value)) return value.find((entry) => String(entry.port ?? entry.id) === step);
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[step] : undefined;
}
