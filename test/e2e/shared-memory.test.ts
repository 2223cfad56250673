/** Two processes whose packets go through memory that they share. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { batchedUdpAvailable } from '../../src/dgram-ext/index.js';
import { auditedStarter } from './audited-programs.js';
import { isBuilt, MAIN, type Program } from './executable.js';

const SERVER = '127.42.9.1';
const CLIENT = '127.42.9.2';
let tcpPort = 26900;

const start = auditedStarter();

async function pair(server: string[], client: string[], op = 'write'): Promise<{ server: Program; client: Program }> {
  const port = String(tcpPort++);
  const listening = start('bw', op, '-p', port, '--bind', SERVER, '--json', ...server);
  await listening.writes('stderr', /waiting for/);
  return { server: listening, client: start('bw', op, SERVER, '-p', port, '--bind', CLIENT, '--json', ...client) };
}

/** Rings that a process has mapped: those that it writes and those that it reads. */
const ringsOf = ({ process: { pid } }: Program) =>
  new Set(readFileSync(`/proc/${pid}/maps`, 'utf8').match(/\d+ +\/memfd:rocev2-ring/g)).size;

describe.runIf(isBuilt && batchedUdpAvailable() === undefined)('--io shm between two processes', () => {
  it.each(['inline', 'worker'])('moves verified data through two rings, with the NIC %s', async (engine) => {
    const options = ['--io', 'shm', '--engine', engine];
    const { server, client } = await pair(options, [...options, '-s', '1MiB', '-D', '2s']);
    await expect.poll(() => [ringsOf(server), ringsOf(client)], { timeout: 20_000 }).toEqual([2, 2]);
    expect(await client.ended()).toBe(0);
    expect(JSON.parse(client.stdout)).toMatchObject({ verified: true, io: 'shm' });
    expect(await server.ended()).toBe(0);
    // Neither lost nor out of order: a process that had to wait may time out, but finds no gap.
    expect(JSON.parse(server.stdout).counters).not.toHaveProperty('out_of_sequence');
  });

  it('speaks UDP with a peer that does not share memory', async () => {
    const { server, client } = await pair(['--io', 'mmsg'], ['--io', 'shm', '-s', '1MiB', '-n', '20']);
    expect(await client.ended()).toBe(0);
    expect(JSON.parse(client.stdout)).toMatchObject({ verified: true, io: 'mmsg' });
    expect(await server.ended()).toBe(0);
  });

  it('recovers from packets that fault rules take out of the ring', async () => {
    const lossy = ['--io', 'shm', '-s', '100KB', '-n', '50', '--loss', 'every=61'];
    const { server, client } = await pair(['--io', 'shm'], lossy);
    expect(await client.ended()).toBe(0);
    const { verified, counters } = JSON.parse(client.stdout);
    expect(verified).toBe(true);
    expect(counters.tx_retransmitted).toBeGreaterThan(0);
    expect(await server.ended()).toBe(0);
  });

  it.each(['shm', 'auto'])('ends when the peer is killed, as over UDP, with %s', async (io) => {
    const { server, client } = await pair(['--io', io], ['--io', io, '-s', '1MiB', '-D', '20s']);
    await expect.poll(() => ringsOf(client), { timeout: 20_000 }).toBe(2);
    server.kill('SIGKILL');
    expect(await client.ended()).not.toBe(0);
    expect(client.stderr).toMatch(/the peer|connection/);
  });
});

/** A way to run a command elsewhere on this host; undefined where this user may not. */
function elsewhere(...prefix: string[]): string[] | undefined {
  const tried = spawnSync(prefix[0], [...prefix.slice(1), process.execPath, MAIN, '--version'], { encoding: 'utf8' });
  return tried.status === 0 ? prefix : undefined;
}

const isUsable = isBuilt && batchedUdpAvailable() === undefined;
const PLACES = [
  // As root of this system: a user namespace would be another difference.
  ['in another PID namespace', isUsable && process.getuid?.() === 0 ? elsewhere('unshare', '-pf') : undefined],
  ['in another user namespace', isUsable ? elsewhere('unshare', '-U') : undefined],
  ['of another user', isUsable ? elsewhere('setpriv', '--reuid', '65534', '--clear-groups') : undefined],
] as const;

describe.runIf(isUsable)('without --io, two processes', () => {
  it.each(['inline', 'worker'])('share memory and say so, with the NIC %s', async (engine) => {
    const options = ['--engine', engine];
    const { server, client } = await pair(options, [...options, '-s', '1MiB', '-D', '2s']);
    await expect.poll(() => [ringsOf(server), ringsOf(client)], { timeout: 20_000 }).toEqual([2, 2]);
    expect(await client.ended()).toBe(0);
    expect(JSON.parse(client.stdout)).toMatchObject({ verified: true, io: 'shm' });
    expect(await server.ended()).toBe(0);
    expect(JSON.parse(server.stdout)).toMatchObject({ io: 'shm' });
    expect(JSON.parse(server.stdout).counters).not.toHaveProperty('out_of_sequence');
  });

  it.each<[string, string[]]>([
    ['says --io mmsg', ['--io', 'mmsg']],
    ['has fault rules', ['--loss', 'every=1000']],
  ])('speak UDP where one of them %s', async (_, options) => {
    const { server, client } = await pair(options, ['-s', '1MiB', '-D', '1s']);
    expect(await client.ended()).toBe(0);
    expect(JSON.parse(client.stdout)).toMatchObject({ verified: true, io: 'mmsg' });
    expect(await server.ended()).toBe(0);
    expect(JSON.parse(server.stdout)).toMatchObject({ io: 'mmsg' });
  });

  describe.each(PLACES)('speak UDP where one of them is %s', (_, prefix) => {
    it.skipIf(prefix === undefined)('and never wait for memory', async () => {
      const port = String(tcpPort++);
      const server = start('bw', 'write', '-p', port, '--bind', SERVER, '--json');
      await server.writes('stderr', /waiting for/);
      const args = ['bw', 'write', SERVER, '-p', port, '--bind', CLIENT, '-s', '1MiB', '-n', '20', '--json'];
      const client: ChildProcess = spawn(prefix![0], [...prefix!.slice(1), process.execPath, MAIN, ...args]);
      let text = '';
      client.stdout!.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      const [code] = await once(client, 'close');
      expect(code).toBe(0);
      expect(JSON.parse(text)).toMatchObject({ verified: true, io: 'mmsg' });
      expect(await server.ended()).toBe(0);
      expect(JSON.parse(server.stdout)).toMatchObject({ io: 'mmsg' });
    });
  });
});
