import type { Output } from '@rocev2/command';

const TIMEOUT_MS = 8000;
const LOOK_MS = 1000;
const WORDS =
  "nothing has been written for 8 s: writes wait while fewer than three nodes take data, or have room for two extents ('rocev2 extents status' shows them); Ctrl-C ends the wait";

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
    if (stillMs < TIMEOUT_MS) return;
    output.note(WORDS);
    clearInterval(timer);
  }, LOOK_MS);
  try {
    return await work;
  } finally {
    clearInterval(timer);
  }
}
