import { setTimeout as pause } from 'node:timers/promises'; // timer: between two questions, here alone

/**
 * Asks every `everyMs` (default 5) until the answer is true: for what happens in its own time and calls nobody back, as in another process.
 * Throws with the question when there is no such answer within `limitMs` (default 20,000).
 */
export async function eventually(
  question: () => boolean | Promise<boolean>,
  { limitMs = 20_000, everyMs = 5 }: { limitMs?: number; everyMs?: number } = {},
): Promise<void> {
  const end = performance.now() + limitMs;
  while (!(await question())) {
    if (performance.now() > end) throw new Error(`not within ${limitMs} ms: ${question}`);
    await pause(everyMs);
  }
}
