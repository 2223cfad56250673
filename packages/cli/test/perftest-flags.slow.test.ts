/** perftest's flags in `bw` and `lat`: real sockets on loopback, both sides in this process. */

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { freePort } from '../../../test/support/free-port.js';
import { ACCEPTED_FLAGS, MISSING_FLAGS, TAKEN_FLAGS } from '../src/transfer/flags.js';
import { PeakFinder } from '../src/transfer/peak-finder.js';
import { bothSides } from './both-sides.js';
import { run } from './run-in-process.js';

const SERVER = '127.63.0.1';
const CLIENT = '127.63.0.2';

/** Runs `bw|lat OP`, with the same `both` on each side, and `client` on the client. */
async function pair(words: readonly string[], client: readonly string[], both: readonly string[] = []) {
  const host = both.includes('--perftest') ? '127.0.0.1' : SERVER;
  const shared = ['-p', `${await freePort()}`, '--json', ...both];
  const [atServer, atClient] = await bothSides(
    [...words, ...shared, '--bind', SERVER],
    [...words, host, ...shared, '--bind', CLIENT, ...client],
  );
  const said = atServer.stderr + atClient.stderr;
  return {
    exitCodes: [atServer.exitCode, atClient.exitCode],
    said,
    atClient: atClient.stdout === '' ? undefined : JSON.parse(atClient.stdout),
    atServer: atServer.stdout === '' ? undefined : JSON.parse(atServer.stdout),
    clientSaid: atClient.stderr,
  };
}

const powersOfTwo = (to: number) => Array.from({ length: Math.log2(to) }, (_, i) => 2 ** (i + 1));

describe.skipIf(process.platform !== 'linux')('two of our own', () => {
  it.each(['write', 'read', 'send'])('bw %s -b: both sides send, and the data of both is verified', async (op) => {
    const { exitCodes, said, atClient } = await pair(['bw', op], ['-b', '-n', '40', '-s', '9000', '-q', '2']);
    expect(exitCodes, said).toEqual([0, 0]);
    expect(atClient).toMatchObject({
      bidirectional: true,
      iterations: 160,
      bytes: 160 * 9000,
      verified: true,
      lost: 0,
    });
    expect(atClient.directions).toMatchObject([{ iterations: 80 }, { iterations: 80 }]);
  });

  it('bw atomic --bidir: each side adds up what the other has counted', async () => {
    const { exitCodes, said, atClient } = await pair(['bw', 'atomic'], ['--bidir', '-n', '50']);
    expect(exitCodes, said).toEqual([0, 0]);
    expect(atClient).toMatchObject({ iterations: 100, verified: true });
  });

  it('without -b one direction counts', async () => {
    const { atClient } = await pair(['bw', 'write'], ['-n', '40', '-s', '9000']);
    expect(atClient).toMatchObject({ bidirectional: false, iterations: 40, directions: null, verified: true });
  });

  it('bw send -b -c UC with loss: what is missing is counted in both directions', async () => {
    const flags = ['-b', '-n', '50', '-s', '5000', '--loss', 'every=20'];
    const { exitCodes, said, atClient } = await pair(['bw', 'send'], flags, ['-c', 'UC']);
    expect(exitCodes, said).toEqual([0, 0]);
    expect(atClient).toMatchObject({ transport: 'uc', verified: true });
    expect(atClient.lost).toBeGreaterThan(0);
    expect(atClient.iterations + atClient.lost).toBe(100);
  });

  it.each([
    ['bw', 'send'],
    ['lat', 'send'],
  ])('%s %s -a -c UD: every size to the path MTU', async (tool, op) => {
    const { exitCodes, said, atClient } = await pair([tool, op], ['-a', '-n', '10'], ['-c', 'UD']);
    expect(exitCodes, said).toEqual([0, 0]);
    const sizes = atClient.sizes as Array<{ sizeBytes: number; iterations: number; verified: boolean }>;
    expect(sizes.map(({ sizeBytes }) => sizeBytes)).toEqual(powersOfTwo(4096));
    for (const each of sizes) expect(each).toMatchObject({ iterations: 10, verified: true });
  });

  it.each([
    ['bw', 'write'],
    ['lat', 'write'],
  ])('%s %s -a: every size from 2 bytes to 8 MiB, each verified', async (tool, op) => {
    const { exitCodes, said, atClient } = await pair([tool, op], ['-a', '-n', '2']);
    expect(exitCodes, said).toEqual([0, 0]);
    const sizes = atClient.sizes as Array<{ sizeBytes: number; verified: boolean }>;
    expect(sizes.map(({ sizeBytes }) => sizeBytes)).toEqual(powersOfTwo(2 ** 23));
    expect(sizes.every(({ verified }) => verified)).toBe(true);
  });

  it('-Q, -l, -I, -r and -o move the same messages', async () => {
    const flags = ['-n', '103', '-s', '200', '-Q', '10', '-l', '4', '-I', '256', '-r', '16', '-o', '2'];
    const { exitCodes, said, atClient } = await pair(['bw', 'send'], flags);
    expect(exitCodes, said).toEqual([0, 0]);
    expect(atClient).toMatchObject({ iterations: 103, verified: true });
  });

  it('-D 0.3 -Q 50: a bare number is seconds, and the last messages are waited for', async () => {
    const { exitCodes, said, atClient } = await pair(
      ['bw', 'write'],
      ['-D', '0.3', '-Q', '50', '-s', '1000', '-i', '0.1'],
    );
    expect(exitCodes, said).toEqual([0, 0]);
    expect(atClient).toMatchObject({ verified: true, peakBps: null });
    expect(atClient.seconds).toBeGreaterThan(0.29);
    const intervals = atClient.intervals as Array<{ messages: number }>;
    expect(intervals.length).toBeGreaterThan(0);
    expect(intervals.reduce((sum, { messages }) => sum + messages, 0)).toBe(atClient.iterations);
  });

  it('--run_infinitely ends with Ctrl-C, and tells what it has done', async () => {
    const port = `${await freePort()}`;
    const server = run(['bw', 'write', '-p', port, '--bind', SERVER, '--json']);
    const stop = new AbortController();
    const onStdout = (soFar: string) => void ((soFar.match(/ messages /g)?.length ?? 0) >= 2 && stop.abort());
    const io = { interrupted: stop.signal, onStdout };
    const client = ['bw', 'write', SERVER, '-p', port, '--bind', CLIENT, '-s', '1000', '--run_infinitely', '-D', '0.1'];
    const { exitCode, stdout } = await run(client, io);
    expect(exitCode).toBe(130);
    expect(stdout).toMatch(/0\.00-.*messages/);
    expect(stdout).toContain('data verified');
    expect((await server).exitCode).toBe(0);
  });

  it('--cpu_util and the peak are told, -N leaves the peak out', async () => {
    // 250 MB, since the kernel counts the processor's time in steps of some milliseconds
    const { atClient } = await pair(['bw', 'write'], ['-n', '4000', '-s', '65536', '--cpu_util']);
    expect(atClient.cpuPercent).toBeGreaterThan(0);
    expect(atClient.peakBps).toBeGreaterThanOrEqual(atClient.goodputBps * 0.99);
    expect((await pair(['bw', 'write'], ['-n', '50', '-N'])).atClient).toMatchObject({
      peakBps: null,
      cpuPercent: null,
    });
  });

  it.each([
    ['-w', '1000000', 'below the limit of -w'],
    ['-y', '1000', 'below the limit of -y'],
  ])('%s %s: exit code 1 below the limit', async (flag, limit, text) => {
    const { exitCodes, clientSaid, atClient } = await pair(['bw', 'write'], ['-n', '50', flag, limit]);
    expect(exitCodes).toEqual([0, 1]);
    expect(clientSaid).toContain(text);
    expect(atClient).toMatchObject({ verified: true });
  });

  it('limits that are met change nothing', async () => {
    expect((await pair(['bw', 'write'], ['-n', '50', '-w', '0.001', '-y', '0.0000001'])).exitCodes).toEqual([0, 0]);
  });

  it.each([
    ['bw', 'write', ['-b']],
    ['bw', 'send', ['-b']],
    ['bw', 'send', ['-a', '-b', '-c', 'UD']],
    ['lat', 'send', ['-a', '-c', 'UD']],
    ['bw', 'read', ['-b', '-q', '2']],
  ])('%s %s --perftest %j: our two sides understand each other', async (tool, op, flags) => {
    const { exitCodes, said, atClient, atServer } = await pair([tool, op], [], ['--perftest', '-n', '10', ...flags]);
    expect(exitCodes, said).toEqual([0, 0]);
    for (const side of [atClient, atServer]) {
      expect(side).toMatchObject({ op });
      expect(side.iterations).toBeGreaterThanOrEqual(10);
    }
  });
});

describe('flags that are not taken', () => {
  it('those without effect say what does their work here', async () => {
    const port = `${await freePort()}`;
    const flags = ['-d', 'mlx5_0', '-x', '3', '-F', '-S', '1', '--ib-port', '1', '-p', port, '--udp-port', '1'];
    const { stderr } = await run(['bw', 'write', '127.0.0.1', ...flags]);
    for (const name of ['-d, --ib-dev', '-x, --gid-index', '-F, --CPU-freq', '-S, --sl', '--ib-port']) {
      expect(stderr).toContain(`${name} has no effect here: `);
    }
    expect(stderr).toContain('--bind chooses the address');
  });

  it.each([
    ['bw write -T 3', 'there is no option for it'],
    ['bw write --mmap f', 'process memory'],
    ['lat send -H', '--json has the percentiles'],
  ])('%s is refused with the reason', async (line, reason) => {
    const { exitCode, stderr } = await run(line.split(' '));
    expect(exitCode).toBe(2);
    expect(stderr).toContain('of perftest is not supported');
    expect(stderr).toContain(reason);
  });

  it.each([
    ['bw atomic -a', 'an atomic operation is always 8 bytes'],
    ['bw write -a -D 1', 'give -n'],
    ['bw write -a -s 4', 'give only one of them'],
    ['bw read -I 16', '-I cannot be used with read'],
    ['bw write -l 200', 'give -t 200 or more'],
    ['bw send -b --run_infinitely --perftest', 'give -D'],
    ['bw write -R', '-R needs --perftest'],
    ['bw write -w -1', 'Write a number'],
  ])('%s contradicts itself', async (line, reason) => {
    const { exitCode, stderr } = await run(line.split(' '));
    expect(exitCode).toBe(2);
    expect(stderr).toContain(reason);
  });

  it('no flag stands in two of the three tables, and every one says something', () => {
    const names = [...TAKEN_FLAGS, ...ACCEPTED_FLAGS, ...MISSING_FLAGS].flatMap(({ flags, also = [] }) => [
      ...flags.replace(/ <.*/, '').split(', '),
      ...also,
    ]);
    expect(new Set(names).size).toBe(names.length);
  });
});

it('docs/perftest.md is what the table says', async () => {
  await promisify(execFile)(process.execPath, ['scripts/perftest-doc.js', '--check']);
}, 20_000);

describe('the peak', () => {
  const plan = { durationNs: 0, iterations: 3, qps: 1 } as never;

  it('is the best run of neighbours, from the post of its first to the completion of its last', () => {
    const peak = PeakFinder.forPlan(plan, true)!;
    peak.posted(3, 0);
    peak.completed(1, 1000);
    peak.completed(2, 1200);
    // Three messages of 100 bytes in 1200 ns.
    expect(peak.peakBps(100)).toBeCloseTo((100 * 8 * 1e9) / 400);
  });

  it('is not looked for in long runs, in time, or where nobody wants it', () => {
    expect(PeakFinder.forPlan(plan, false)).toBeUndefined();
    expect(PeakFinder.forPlan({ durationNs: 0, iterations: 20_001, qps: 1 } as never, true)).toBeUndefined();
    expect(PeakFinder.forPlan({ durationNs: 1, iterations: 0, qps: 1 } as never, true)).toBeUndefined();
  });
});
