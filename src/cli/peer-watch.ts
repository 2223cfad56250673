/** Ends a run that waits for completions that will not come: the user has had enough, or the peer is silent and no connection tells why. */

import type { RdmaDevice } from '../verbs/device.js';
import { CommandFailure, EXIT_INTERRUPTED, EXIT_NO_CONNECTION } from './exit.js';

/** How long a peer may be silent, and what it is then. */
export interface Silence {
  /** Milliseconds without anything from the peer. */
  readonly limitMs: number;
  /** What the command then ends with. */
  readonly failure: () => CommandFailure;
}

const SILENCE_MS = 30_000;
const SILENT_PEER: Silence = {
  limitMs: SILENCE_MS,
  failure: () => new CommandFailure(EXIT_NO_CONNECTION, `the peer has said nothing for ${SILENCE_MS / 1000} s`),
};

/**
 * Runs `work`; when it is to end before its time the device is closed under it, and the failure says why. `work` calls `alive` whenever
 * something came from the peer.
 */
export async function watched<T>(
  device: RdmaDevice,
  interrupted: AbortSignal,
  work: (alive: () => void) => Promise<T>,
  { limitMs, failure }: Silence = SILENT_PEER,
): Promise<T> {
  let reason: CommandFailure | undefined;
  const end = (failure: CommandFailure) => {
    reason ??= failure;
    device.close().catch(() => {}); // Whoever owns the device closes it again, and hears of it.
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

/** How long a side stays after its last message: should the last ACK be lost, the peer asks again (ACK timeout 14 is 67 ms). */
const LINGER_MS = 200;

/** Waits a moment, so that the peer may still be answered. */
export function linger(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, LINGER_MS));
}
