/**
 * Waiting by looking: the NIC is polled between two looks where that is possible, as a busy loop over `ibv_poll_cq`
 * does.
 */

import type { RdmaDevice } from 'rocev2/internal/verbs';

/**
 * Polls, some hundred microseconds, until the event loop has a round: it brings Ctrl-C, timers and the control
 * connection.
 */
const POLLS_BETWEEN_ROUNDS = 1024;

let polls = 0;

/** Polls the NIC. False: it cannot be polled now, and the event loop must iterate before the next look. */
export function pollNic(device: Pick<RdmaDevice, 'poll'>): boolean {
  if (polls < POLLS_BETWEEN_ROUNDS && device.poll()) {
    polls++;
    return true;
  }
  polls = 0;
  return false;
}
