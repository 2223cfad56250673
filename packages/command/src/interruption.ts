/** Ctrl-C, SIGTERM and SIGHUP, which end servers normally and all other work early. */

import { setTimeout as delay } from 'node:timers/promises';
import { CommandFailure, EXIT_INTERRUPTED } from './exit.js';
import type { CliIo } from './output.js';

/** Ctrl-C; what systemd, Docker and Kubernetes send; the end of a terminal. */
export const END_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * A terminal sends Ctrl-C to all its processes at once: a child may die of it a moment before this process receives it.
 */
const GRACE_MS = 250;
const LAST_WORDS_MS = 400;
/** The peer takes part in them, and its machine may be busy: a shorter limit would lose the results of a long run. */
const FIGURES_MS = 2_000;
const CLOSING_MS = 700;

export function untilInterrupted(signal: AbortSignal, forget?: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener('abort', () => resolve(undefined), { once: true, ...(forget && { signal: forget }) });
  });
}

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
 * After Ctrl-C the work has `limitMs` to end; then this rejects with exit code 130, and the caller closes its
 * resources.
 */
export async function endingInTime<T>(work: Promise<T>, signal: AbortSignal, limitMs = LAST_WORDS_MS): Promise<T> {
  const done = new AbortController();
  const timeIsUp = async (): Promise<never> => {
    await untilInterrupted(signal, done.signal);
    await delay(limitMs, undefined, { signal: done.signal });
    throw new CommandFailure(EXIT_INTERRUPTED);
  };
  const late = timeIsUp();
  late.catch(() => {});
  try {
    return await Promise.race([work, late]);
  } finally {
    done.abort();
  }
}

export function endingWithFigures<T>(work: Promise<T>, io: CliIo): Promise<T> {
  io.allowAfterInterruption?.(FIGURES_MS + CLOSING_MS);
  return endingInTime(work, io.interrupted, FIGURES_MS);
}
