/** A server and its client, as commands in this process. */

import { type CliResult, type RunOptions, run } from './run-in-process.js';

/** Starts a server; its outcome, and what resolves once it says that it waits for a client, or has ended. */
export function serve(
  args: readonly string[],
  options: RunOptions = {},
): { ended: Promise<CliResult>; waits: Promise<void> } {
  let ended: Promise<CliResult> | undefined;
  const waits = new Promise<void>((resolve) => {
    const onStderr = (soFar: string) => void (/waiting for|listening on|Ctrl-C ends it/.test(soFar) && resolve());
    ended = run(args, { ...options, onStderr });
    ended.then(() => resolve(), resolve);
  });
  return { ended: ended!, waits };
}

/** Runs a server, and, once it waits for one, its client. */
export async function bothSides(
  server: readonly string[],
  client: readonly string[],
): Promise<[atServer: CliResult, atClient: CliResult]> {
  const { ended, waits } = serve(server);
  await waits;
  return Promise.all([ended, run(client)]);
}
