/** Ctrl-C in the middle of long work: exit code 130, with --json one document or none, and no stack. */

import { describe, expect, it } from 'vitest';
import { documentOf } from '../support/documents.js';
import { isBuilt, rocev2Starter } from './executable.js';
import { underLoad } from './watched.js';

const SERVER = '127.65.4.1';
const CLIENT = '127.65.4.2';

const start = rocev2Starter();

describe.runIf(isBuilt)('Ctrl-C', () => {
  it('ends a sweep with the runs that are done', async () => {
    const sweep = start('sim', 'sweep', 'dcqcn-n64-4us', '--over', 'seed=1..12', '--jobs', '2', '--json');
    await sweep.writes('stderr', /12 runs, 2 at a time\n/);
    sweep.kill('SIGINT');
    expect(await sweep.ended()).toBe(130);
    expect(documentOf('sim-sweep', sweep.stdout)['runs']).toBeInstanceOf(Array);
    expect(sweep.stderr).toMatch(
      /^flows start up to 10 us late.*\n12 runs, 2 at a time\nrocev2: interrupted: some runs are missing\n$/,
    );
  });

  it('ends a disk bench with the rows that are done', async () => {
    const bench = start('disk', 'bench', '--size', '16MiB', '-D', '200ms', '--json');
    await bench.writes('stderr', /measuring/);
    bench.kill('SIGINT');
    expect(await bench.ended(), bench.stderr).toBe(130);
    expect(documentOf('disk-bench', bench.stdout)).toHaveProperty('rows');
  });

  it('ends READs that are copies, which never wait', async () => {
    const server = start('lat', 'read', '--bind', SERVER, '-p', '26192');
    await server.writes('stderr', /waiting for/);
    const client = start('lat', 'read', SERVER, '--bind', CLIENT, '-p', '26192', '-D', '10min');
    await client.writes('stdout', /RKey/);
    client.kill('SIGINT');
    expect(await client.ended()).toBe(130);
  });

  it('ends the server of a transfer under way, and the client hears of it', async () => {
    const server = start('bw', 'write', '--bind', SERVER, '-p', '26191');
    await server.writes('stderr', /waiting for/);
    const http = `${CLIENT}:9467`;
    const client = start('bw', 'write', SERVER, '--bind', CLIENT, '-p', '26191', '-D', '60s', '--estats-http', http);
    await underLoad(http);
    server.kill('SIGINT');
    expect(await server.ended()).toBe(130);
    expect(await client.ended()).toBe(1);
    expect(client.stderr).toMatch(
      /^rocev2: RDMA_WRITE .*; the peer process is gone; 127\.65\.4\.1 QP \S+ has not acknowledged PSN .*\n$/,
    );
  });
});
