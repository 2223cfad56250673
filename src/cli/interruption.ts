/** Ctrl-C: what servers wait for, and what ends the work of child processes early. */

import { setTimeout as delay } from 'node:timers/promises';

/** A terminal sends Ctrl-C to all its processes at once: a child may die of it a moment before we hear of it ourselves. */
const GRACE_MS = 250;

/** Resolves when Ctrl-C was pressed. `forget` ends the waiting: then it never resolves, and leaves no listener behind. */
export function untilInterrupted(signal: AbortSignal, forget?: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener('abort', () => resolve(undefined), { once: true, ...(forget && { signal: forget }) });
  });
}

/** The result of the work, or undefined once it was interrupted, also if that made the work fail. */
export async function orInterrupted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const done = new AbortController();
  const interruption = untilInterrupted(signal, done.signal);
  try {
    return await Promise.race([work, interruption]);
  } catch (error) {
    await Promise.race([interruption, delay(GRACE_MS)]);
    if (signal.aborted) return undefined;
    throw error;
  } finally {
    done.abort();
  }
}
