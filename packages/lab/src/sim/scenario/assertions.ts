import type { AssertionResult, ScenarioResult } from './result.js';
import type { Assertion } from './schema.js';

type Result = Omit<ScenarioResult, 'assertions'>;

/** A path without a number fails the assertion instead of throwing the run away. */
export function check({ name, value, min, max }: Assertion, result: Result): AssertionResult {
  const found = valueAt(result, value);
  if (typeof found !== 'number') return { name, ok: false, detail: missing(result, value) };
  const ok = found >= (min ?? Number.NEGATIVE_INFINITY) && found <= (max ?? Number.POSITIVE_INFINITY);
  const limits = [...(min === undefined ? [] : [`at least ${min}`]), ...(max === undefined ? [] : [`at most ${max}`])];
  return { name, ok, detail: `${value} is ${Number(found.toPrecision(6))}, should be ${limits.join(' and ')}` };
}

/**
 * What is at a path like `summary.jain`, `flows[0].goodputBps` or `queues[s0>h2].meanBytes`: in brackets a flow's id, a
 * queue's port, a buffer's switch.
 */
function valueAt(result: Result, path: string): unknown {
  return stepsOf(path).reduce<unknown>(follow, result);
}

function stepsOf(path: string): string[] {
  return path.split(/[.[]/).map((step) => step.replace(/\]$/, ''));
}

function follow(value: unknown, step: string): unknown {
  if (Array.isArray(value)) return value.find((entry) => keyOf(entry) === step);
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[step] : undefined;
}

function keyOf(entry: { port?: string; switch?: string; id?: number }): string {
  return String(entry.port ?? entry.switch ?? entry.id);
}

function missing(result: Result, path: string): string {
  let place: object = result;
  for (const step of stepsOf(path)) {
    const next = follow(place, step);
    if (typeof next !== 'object' || next === null) break;
    place = next;
  }
  const names = Array.isArray(place) ? place.map((entry) => `[${keyOf(entry)}]`) : Object.keys(place);
  return `the result has no number at '${path}': there are ${names.join(', ')}`;
}
