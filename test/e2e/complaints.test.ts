/** What commands say that cannot do their work, in a line: too few descriptors, a peer that is another program. */

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { isBuilt, isLinux, rocev2Starter } from './executable.js';

const HOST = '127.0.6.31';

const start = rocev2Starter();

/** Exit code and stderr of `rocev2 ARGS` with at most so many descriptors. */
function withDescriptors(limit: number, args: string): Promise<{ code: number; stderr: string }> {
  const script = `ulimit -n ${limit}; exec "${process.execPath}" packages/cli/bin/rocev2.js ${args}`;
  return new Promise((resolve) => {
    execFile('/bin/sh', ['-c', script], (error, _, stderr) => resolve({ code: Number(error?.code ?? 0), stderr }));
  });
}

describe.runIf(isBuilt && isLinux)('with few descriptors', () => {
  it.each([
    [20, 'bw write'],
    [64, 'bw write'],
    [64, 'rping -s -a 127.0.6.31'],
    [64, 'dashboard'],
  ])('%i: %s ends with a line that says so', async (limit, args) => {
    const { code, stderr } = await withDescriptors(limit, args);
    expect(code, stderr).toBe(1);
    expect(stderr).toMatch(
      /^rocev2: EMFILE: too many open files.* \(raise the limit of open files: ulimit -n 1024\)\n$/,
    );
  });

  it('1024 suffice', async () => {
    expect(await withDescriptors(1024, 'sim list --json')).toMatchObject({ code: 0, stderr: '' });
  });
});

describe.runIf(isBuilt)('a pingpong client', () => {
  it('says what a server may be that reads and does not answer', async () => {
    const server = createServer((socket) => socket.on('error', () => {}).resume());
    await once(server.listen(0, HOST), 'listening');
    const { port } = server.address() as { port: number };
    const client = start('pingpong', HOST, '-p', String(port));
    await client.writes('stderr', /the server does not answer: if it is ibv_srq_pingpong/);
    client.kill('SIGINT');
    expect(await client.ended()).toBe(130);
    server.close();
  });
});
