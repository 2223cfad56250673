/** Ctrl-C: what servers wait for, and what ends all other work early. */

import { setTimeout as delay } from 'node:timers/promises';
import { CommandFailure, EXIT_INTERRUPTED } from './exit.js';
import type { CliIo } from './output.js';

/** A terminal sends Ctrl-C to all its processes at once: a child may die of it a moment before we hear of it ourselves. */
const GRACE_MS = 250;
/** What Ctrl-C leaves to work that comes to its end by itself. */
const LAST_WORDS_MS = 400;
/** The same for work that ends with figures. The peer has a part in them, and its machine may be busy: less would throw away what a long run has measured. */
const FIGURES_MS = 2_000;
/** Beyond them: to close what the work used. */
const CLOSING_MS = 700;

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

/**
 * The result of the work, which after Ctrl-C has `limitMs` to come to its end. Then this rejects with exit code 130, whatever the work still waits
 * for, and the caller closes what the work uses.
 */
export async function endingInTime<T>(work: Promise<T>, signal: AbortSignal, limitMs = LAST_WORDS_MS): Promise<T> {
  const done = new AbortController();
  const timeIsUp = async (): Promise<never> => {
    await untilInterrupted(signal, done.signal);
    await delay(limitMs, undefined, { signal: done.signal });
    throw new CommandFailure(EXIT_INTERRUPTED);
  };
  const late = timeIsUp();
  late.catch(() => {}); // Cancelled, or thrown below.
  try {
    return await Promise.race([work, late]);
  } finally {
    done.abort();
  }
}

/** The same for work that ends with figures: two seconds. */
export function endingWithFigures<T>(work: Promise<T>, io: CliIo): Promise<T> {
  io.allowAfterInterruption?.(FIGURES_MS + CLOSING_MS);
  return endingInTime(work, io.interrupted, FIGURES_MS);
}
