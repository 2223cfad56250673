import type { Output } from '@rocev2/command';

export const WATCH_MS = 1000;

/** Prints why a manager refuses requests, each reason once: it takes a moment until nodes have reported. */
export function watchMetadata(ask: () => Promise<string | undefined>, output: Output): NodeJS.Timeout {
  let last: string | undefined;
  let printed: string | undefined;
  const look = async () => {
    const trouble = await ask().catch(() => undefined);
    if (trouble !== undefined && trouble === last && trouble !== printed) {
      output.warn(trouble);
      printed = trouble;
    }
    last = trouble;
  };
  return setInterval(() => void look(), WATCH_MS);
}
