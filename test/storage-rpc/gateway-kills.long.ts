import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isBuilt, Program } from '../e2e/executable.js';
import { KILLED_DISK_BYTES, killAgainAndAgain } from '../e2e/killed-gateway.js';
import { timesOfRound } from '../support/rounds.js';

const KILLS = timesOfRound(100);
const SERVER = '127.54.0.3';
const GATEWAY = '127.54.0.4';

test.skipIf(!isBuilt)(
  `a gateway killed ${KILLS} times with 64 writes under way: the server has all that was acknowledged`,
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'rocev2-kills-'));
    const backend = ['--backend', `file:${join(folder, 'disk')}`, '--size', `${KILLED_DISK_BYTES}`];
    const server = Program.rocev2('disk', 'serve', ...backend, '--bind', SERVER, '--json');
    let gateway: Program | undefined;
    try {
      await server.writes('stderr', /Ctrl-C ends it/);
      await killAgainAndAgain(KILLS, async () => {
        const listen = ['--listen', `unix:${join(folder, 'socket')}`];
        // The next gateway need not wait for the end of the lease.
        gateway = Program.rocev2('disk', 'nbd', '--connect', SERVER, '--shared', '--bind', GATEWAY, ...listen);
        const [, uri] = await gateway.writes('stderr', / at (nbd\S+)\n/);
        return { program: gateway, uri };
      });
      server.kill('SIGINT');
      expect(await server.ended(), server.stderr).toBe(0);
      expect(JSON.parse(server.stdout)).toMatchObject({ crcMismatches: 0, protocolErrors: 0 });
    } finally {
      gateway?.kill('SIGKILL');
      server.kill('SIGKILL');
      await rm(folder, { recursive: true });
    }
  },
  600_000, // Two seconds a kill, and other suites beside it.
);
