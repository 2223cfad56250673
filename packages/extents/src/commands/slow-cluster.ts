/** What a command says while the cluster keeps it waiting: writes wait until enough nodes take data. */

import type { Output } from '@rocev2/command';

/** Longer than a manager takes to notice that a node is gone, and to open an extent elsewhere. */
const PATIENCE_MS = 8000;
const LOOK_MS = 1000;
const WORDS =
  "nothing has been written for 8 s: writes wait while fewer than three nodes take data, or have room for two extents ('rocev2 extents status' shows them); Ctrl-C ends the wait";

/** The result of the work. `progress`: what grows while it goes on; NaN while it has nothing to do. */
export async function sayingIfSlow<T>(
  work: Promise<T>,
  output: Pick<Output, 'note'>,
  progress: () => number = () => 0,
): Promise<T> {
  let last = progress();
  let stillMs = 0;
  const timer = setInterval(() => {
    const now = progress();
    stillMs = now === last ? stillMs + LOOK_MS : 0;
    last = now;
    if (stillMs < PATIENCE_MS) return;
    output.note(WORDS);
    clearInterval(timer);
  }, LOOK_MS);
  try {
    return await work;
  } finally {
    clearInterval(timer);
  }
}
