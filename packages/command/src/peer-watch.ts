/**
 * Ends a run that would wait indefinitely: after Ctrl-C, or when the peer is silent and no connection reports the
 * reason.
 */

import type { RdmaDevice } from 'rocev2/internal/verbs';
import { CommandFailure, EXIT_INTERRUPTED, EXIT_NO_CONNECTION } from './exit.js';

export interface Silence {
  readonly limitMs: number;
  readonly failure: () => CommandFailure;
}

const SILENCE_MS = 30_000;
const SILENT_PEER: Silence = {
  limitMs: SILENCE_MS,
  failure: () => new CommandFailure(EXIT_NO_CONNECTION, `the peer has been silent for ${SILENCE_MS / 1000} s`),
};

export async function watched<T>(
  device: RdmaDevice,
  interrupted: AbortSignal,
  work: (alive: () => void) => Promise<T>,
  { limitMs, failure }: Silence = SILENT_PEER,
): Promise<T> {
  let reason: CommandFailure | undefined;
  const end = (failure: CommandFailure) => {
    reason ??= failure;
    device.close().catch(() => {});
  };
  const onInterrupt = () => end(new CommandFailure(EXIT_INTERRUPTED));
  const silence = setTimeout(() => end(failure()), limitMs);
  interrupted.addEventListener('abort', onInterrupt, { once: true });
  try {
    return await work(() => silence.refresh());
  } catch (error) {
    throw reason ?? error;
  } finally {
    clearTimeout(silence);
    interrupted.removeEventListener('abort', onInterrupt);
  }
}

/**
 * How long a side stays after its last message: if the last ACK is lost, the peer retransmits (ACK timeout 14 is 67
 * ms).
 */
const LINGER_MS = 200;

export function linger(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, LINGER_MS));
}
