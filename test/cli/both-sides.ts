/** A server and its client, as commands in this process. */

import { createServer } from 'node:net';
import { type CliResult, type RunOptions, run } from './run-in-process.js';

/** A TCP port of loopback that nobody used a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

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
