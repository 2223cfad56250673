// @ts-check
/** An owner that computes: its event loop answers nobody. */

import { setTimeout as delay } from 'node:timers/promises';

/** Readers begin so long after they were told, when the owner computes for certain. */
export const HEAD_START_MS = 200;

/** Computes from soon on, until some time after the readers' `seconds`. */
export async function block(/** @type {number} */ seconds) {
  await delay(HEAD_START_MS / 2);
  const endMs = performance.now() + HEAD_START_MS + seconds * 1000;
  while (performance.now() < endMs);
}
