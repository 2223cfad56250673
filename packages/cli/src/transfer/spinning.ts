/** Waiting by looking: the NIC is turned between two looks where that can be done, as a busy loop over `ibv_poll_cq` does. */

import type { RdmaDevice } from 'rocev2/internal/verbs';

/** Turns, some hundred microseconds, until the event loop has a round: it brings Ctrl-C, timers and the control connection. */
const TURNS_BETWEEN_ROUNDS = 1024;

/** Since the event loop of this thread went round. */
let turns = 0;

/** Turns the NIC. False: it has not, and the event loop must have a round before the next look. */
export function turnWhileLooking(device: Pick<RdmaDevice, 'turn'>): boolean {
  if (turns < TURNS_BETWEEN_ROUNDS && device.turn()) {
    turns++;
    return true;
  }
  turns = 0;
  return false;
}
