import { describe, expect, it } from 'vitest';
import { run } from '../../packages/cli/test/run-in-process.js';
import type { LivelockRun } from '../../packages/lab/src/commands/livelock/scheme-comparison.js';
import { documentOf } from '../support/documents.js';
import { isBuilt, Program } from './executable.js';

const SMALL = ['livelock', '--json', '--message', '1MiB', '--seconds', '0.3'];

/** Packets without data that A sends in a run, at most: acknowledgements of what B answers, requests to repeat. */
const OTHER_PACKETS_MAX = 16;

async function runsOf(...args: string[]): Promise<LivelockRun[]> {
  const livelock = Program.rocev2(...SMALL, ...args);
  expect(await livelock.ended(), livelock.stderr).toBe(0);
  return documentOf('livelock', livelock.stdout)['runs'] as LivelockRun[];
}

describe.skipIf(!isBuilt)('rocev2 livelock', () => {
  it('go-back-0 delivers nothing over a busy link; the others do what theory says', async () => {
    const runs = await runsOf();
    expect(runs.map(({ op, scheme }) => `${op} ${scheme}`)).toEqual([
      'send go-back-0',
      'send go-back-n',
      'send selective-repeat',
      'write go-back-0',
      'write go-back-n',
      'write selective-repeat',
      'read go-back-0',
      'read go-back-n',
      'read selective-repeat',
    ]);
    for (const result of runs) {
      const label = JSON.stringify(result);
      // Identifications are sequential, so the rule takes one packet in 256 to the packet. Not all of them are data: A answers, too.
      expect(Math.abs(result.packetsDropped - result.packetsSent / 256), label).toBeLessThan(
        1 + OTHER_PACKETS_MAX / 256,
      );
      expect(result.packetsSent, label).toBeGreaterThan(2 * 256);
      if (result.scheme === 'go-back-0') {
        expect(result.messagesCompleted, label).toBe(0);
        expect(result.goodputBps, label).toBe(0);
      } else {
        expect(result.messagesCompleted, label).toBeGreaterThan(0);
        expect(result.verified, label).toBe(true);
        expect(Math.abs(result.efficiency / result.closedForm! - 1), label).toBeLessThan(0.1);
      }
    }
  });

  it('without loss go-back-0 completes as well', async () => {
    const runs = await runsOf('--drop', 'none', '--schemes', 'go-back-0');
    for (const result of runs) {
      expect(result).toMatchObject({ scheme: 'go-back-0', lossRule: 'none', packetsDropped: 0, verified: true });
      expect(result.messagesCompleted).toBeGreaterThan(0);
    }
  });

  it('go-back-0 completes messages shorter than the distance between losses', async () => {
    const [result] = await runsOf('--ops', 'write', '--schemes', 'go-back-0', '--message', '64KiB');
    expect(result.messagesCompleted).toBeGreaterThan(0);
    expect(result.closedForm).toBeNull();
  });

  it('a QP that gave up is said so, and its run is in the results', async () => {
    const rest = ['--ops', 'write', '--schemes', 'go-back-n', '--drop', 'a>b:every=1'];
    const livelock = Program.rocev2(...SMALL, ...rest);
    expect(await livelock.ended()).toBe(1);
    expect(livelock.stderr).toBe('rocev2: write under go-back-n: the queue pair failed with RETRY_EXC_ERR\n');
    expect(JSON.parse(livelock.stdout).runs).toMatchObject([
      { messagesCompleted: 0, goodputBps: 0, efficiency: 0, verified: null, failure: 'RETRY_EXC_ERR' },
    ]);
  });

  it('a window that no socket buffer holds is refused', async () => {
    const livelock = Program.rocev2(...SMALL, '--window', '1000000');
    expect(await livelock.ended()).toBe(2);
    expect(livelock.stderr).toMatch(/endpoint [ab]: a window of 1000000 packets does not fit/);
  });
});

it.each([
  [['--ops', 'jump'], /--ops.*'jump'.*one of send, write, read/],
  [
    ['--schemes', 'go-back-1'],
    /--schemes.*'go-back-1'.*one of go-back-0, go-back-n, selective-repeat.*did you mean go-back-0/,
  ],
  [['--drop', 'sometimes'], /--drop.*'sometimes'/],
  [['--seconds', '0'], /--seconds.*at most 3600 s/],
  [['--message', '0'], /--message.*at least one byte/],
  [['--window', '1'], /--window.*from 2 up/],
  [['--over', 'rate=1'], /rate is not an axis.*faults, message, mtu, window, seed/],
  [['--over', 'window=1'], /--over window=1: /],
  [['--over', 'seed=1..2', '--trace', 'x'], /--trace cannot be combined with --over/],
])('rocev2 livelock %j is a usage error', async (args, message) => {
  const { exitCode, stdout, stderr } = await run(['livelock', ...args]);
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
  expect(stderr).toMatch(message);
});
