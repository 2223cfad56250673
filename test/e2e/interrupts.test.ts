/** Ctrl-C in the middle of long work: exit code 130, with --json one document or none, and no stack. */

import { describe, expect, it } from 'vitest';
import { isBuilt, rocev2Starter } from './executable.js';

const SERVER = '127.65.4.1';
const CLIENT = '127.65.4.2';

const start = rocev2Starter();

const moment = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe.runIf(isBuilt)('Ctrl-C', () => {
  it('ends a sweep with the runs that are done', async () => {
    const sweep = start('sim', 'sweep', 'dcqcn-n64-4us', '--over', 'seed=1..12', '--jobs', '2', '--json');
    await moment(3000);
    sweep.kill('SIGINT');
    expect(await sweep.ended()).toBe(130);
    expect(JSON.parse(sweep.stdout)).toBeInstanceOf(Array);
    expect(sweep.stderr).toBe('rocev2: interrupted: some runs are missing\n');
  });

  it('ends a disk bench with the rows that are done', async () => {
    const bench = start('disk', 'bench', '--size', '16MiB', '-D', '2s', '--json');
    await bench.writes('stderr', /RDMA by/);
    await moment(500);
    bench.kill('SIGINT');
    expect(await bench.ended(), bench.stderr).toBe(130);
    expect(JSON.parse(bench.stdout)).toHaveProperty('rows');
  });

  it('ends the server of a transfer under way, and the client hears of it', async () => {
    const server = start('bw', 'write', '--bind', SERVER, '-p', '26191');
    await server.writes('stderr', /waiting for/);
    const client = start('bw', 'write', SERVER, '--bind', CLIENT, '-p', '26191', '-D', '60s');
    await client.writes('stdout', /remote address/);
    await moment(300);
    server.kill('SIGINT');
    expect(await server.ended()).toBe(130);
    expect(await client.ended()).toBe(1);
    expect(client.stderr).toMatch(/^rocev2: RDMA_WRITE .*; the peer process is gone\n$/);
  });
});
