import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { run } from '../../packages/cli/test/run-in-process.js';
import { childrenOf, isAlive, isBuilt, isLinux, rocev2Starter } from './executable.js';

const start = rocev2Starter();
const SMALL = ['bw', 'write', '-n', '200', '-s', '16KiB', '-m', '1024', '--faults', 'random=0.02', '-p', '26190'];

describe.runIf(isBuilt)('rocev2 bw --over', () => {
  it('runs every point between two processes, and writes the columns of sim sweep and a chart', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sweep-'));
    const [csv, svg] = [join(folder, 'runs.csv'), join(folder, 'chart.svg')];
    const axes = ['--over', 'recovery=go-back-n,selective-repeat', '--over', 'seed=1..2'];
    const sweep = start(...SMALL, ...axes, '--csv', csv, '--plot', svg);
    expect(await sweep.ended(), sweep.stderr).toBe(0);
    const [head, ...lines] = readFileSync(csv, 'utf8').trim().split('\n');
    const rows = lines.map((line) => Object.fromEntries(head.split(',').map((name, i) => [name, line.split(',')[i]])));
    expect(rows.map(({ recovery, seed }) => `${recovery} ${seed}`)).toEqual([
      'go-back-n 1',
      'go-back-n 2',
      'selective-repeat 1',
      'selective-repeat 2',
    ]);
    for (const row of rows) {
      expect(Number(row['goodputBps'])).toBeGreaterThan(0);
      expect(Number(row['retransmittedPackets'])).toBeGreaterThan(0);
      expect(Number(row['efficiency'])).toBeLessThan(1);
      expect(Number(row['theoreticalEfficiency'])).toBeGreaterThan(0);
      expect(Number(row['completionP99Ns'])).toBeGreaterThanOrEqual(Number(row['completionP50Ns']));
      expect(row['failedFlows']).toBe('0');
    }
    expect(readFileSync(svg, 'utf8')).toContain('95 % confidence intervals');
    rmSync(folder, { recursive: true });
  });

  it('a point that fails is a line without goodput, and the command fails', async () => {
    const sweep = start('bw', 'write', '-n', '10', '-p', '26191', '--retry-cnt', '1', '--over', 'faults=every=1,none');
    expect(await sweep.ended()).toBe(1);
    expect(sweep.stdout).toMatch(/every=1 +failed/);
    expect(sweep.stderr).toMatch(/some runs failed/);
  });

  it.runIf(isLinux)('Ctrl-C ends both processes', async () => {
    const sweep = start('bw', 'write', '-D', '60', '-p', '26192', '--over', 'seed=1..2');
    const { pid } = sweep.process;
    while (childrenOf(pid!).length < 2) await new Promise(setImmediate);
    const children = childrenOf(pid!);
    sweep.kill('SIGINT');
    expect(await sweep.ended()).toBe(130);
    expect(children.filter(isAlive)).toEqual([]);
  });
});

it.each([
  [['127.0.0.1', '--over', 'size=4096'], /leave the host out/],
  [['--over', 'sise=4096'], /sise is not an option with a value.*size/],
  [['--over', 'pcap=a,b'], /pcap is not an option with a value/],
  [['--over', 'size=many'], /--over size=many: /],
  [['--over', 'seed=1..2', '--pcap', 'x'], /--pcap cannot be combined with --over/],
  [['--over', 'seed=1..2', '--json'], /--json cannot be combined with --over/],
  [['--over', 'seed=1..2', '--y', 'goodputBps'], /--y belongs to --plot/],
])('rocev2 bw write %j is a usage error', async (args, message) => {
  const { exitCode, stdout, stderr } = await run(['bw', 'write', ...args]);
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
  expect(stderr).toMatch(message);
});
