/** What a server of bw or lat shows a person while its client runs. */

import { describe, expect, it } from 'vitest';
import { freePort } from '../../../test/support/free-port.js';
import { serve } from './both-sides.js';
import { run } from './run-in-process.js';

const SERVER = '127.0.3.41';
const CLIENT = '127.0.3.42';

/** What the server writes to stderr, with a terminal there or without. */
async function serverSays(tty: boolean, words: readonly string[]): Promise<string> {
  const port = ['-p', `${await freePort()}`];
  const { ended, waits } = serve([...words, ...port, '--bind', SERVER], { tty });
  await waits;
  const client = await run([...words, SERVER, ...port, '--bind', CLIENT, '-n', '20']);
  const server = await ended;
  expect([server.exitCode, client.exitCode], server.stderr + client.stderr).toEqual([0, 0]);
  return server.stderr;
}

describe.skipIf(process.platform !== 'linux')('a server while its client runs', () => {
  it.each([['bw'], ['lat']])('%s: a terminal shows whom it serves, and for how long', async (tool) => {
    expect(await serverSays(true, [tool, 'read'])).toContain(`serving ${CLIENT}: 0s`);
  });

  it('a pipe shows none of it', async () => {
    expect(await serverSays(false, ['bw', 'read'])).not.toContain('serving');
  });
});
