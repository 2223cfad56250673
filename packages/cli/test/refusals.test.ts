/** What every command refuses in the same way: files that are not there, names that are nearly right, values that cannot be. */

import { describe, expect, it } from 'vitest';
import { run } from './run-in-process.js';

const HERE = '127.0.3.61';
const NOWHERE = '/nonexistent-folder/file';
const PORTS = ['--port', `a=${HERE}:0`, '--port', `b=${HERE}:0`];

describe('a file that cannot be read or written: exit code 1, and its name', () => {
  it.each([
    ['decode', NOWHERE],
    ['report', NOWHERE],
    ['report', '.', '--output', NOWHERE],
    ['sim', 'run', `${NOWHERE}.json`],
    ['sim', 'sweep', `${NOWHERE}.json`, '--over', 'seed=1..2'],
    ['sim', 'run', 'dcqcn-n2-4us', '--plot', `${NOWHERE}.svg`],
    ['sim', 'run', 'dcqcn-n2-4us', '--report', `${NOWHERE}.html`],
    ['fluid', 'dcqcn', '--plot', `${NOWHERE}.svg`],
    ['dashboard', '--sim', `${NOWHERE}.json`],
    ['dashboard', '--capture', NOWHERE],
    ['switch', '--config', NOWHERE, ...PORTS],
    ['disk', 'serve', '--backend', `file:${NOWHERE}`, '--engine', 'inline', '--bind', HERE],
    ['disk', 'nbd', '--backend', `file:${NOWHERE}`, '--listen', `${HERE}:0`],
    ['bw', 'write', '--extension', `${NOWHERE}.js`, '--bind', HERE],
    ['bw', 'write', '--pcap', NOWHERE, '--udp-port', '0', '--bind', HERE],
    ['lat', 'write', '--trace', NOWHERE, '--udp-port', '0', '--bind', HERE],
    ['livelock', '--trace', NOWHERE],
  ])('%s %s %s %s', async (...args) => {
    const { exitCode, stderr } = await run(args);
    expect(exitCode, stderr).toBe(1);
    expect(stderr).toContain('/nonexistent-folder/file');
  });
});

describe('a name that is nearly right: exit code 2, and the name that was meant', () => {
  it.each([
    ['go-back-n', 'bw', 'write', '--recovery', 'goback-n'],
    ['dcqcn', 'bw', 'write', '--cc', 'dcqn'],
    ['rateBps', 'bw', 'write', '--cc', 'fixed', '--cc-params', 'rateBp=100'],
    ['sigcomm15', 'bw', 'write', '--cc', 'dcqcn', '--cc-params', 'preset=sigcom15'],
    ['write', 'livelock', '--ops', 'read,wirte'],
    ['selective-repeat', 'livelock', '--schemes', 'selective-repaet'],
    ['randwrite', 'disk', 'bench', '--ops', 'randwrit'],
    ['linkRateBps', 'fluid', 'dcqcn', '--set', 'linkRateBp=1Gbps'],
    ['baseline', 'window', '--policy', 'base-line'],
    ['dcqcn-n2-4us', 'sim', 'run', 'dcqcn-n2-4u'],
  ])('%s', async (meant, ...args) => {
    const { exitCode, stderr } = await run(args);
    expect(exitCode, stderr).toBe(2);
    expect(stderr).toMatch(new RegExp(`did you mean '?${meant}'?\\?`));
  });

  it('a name that is like none has no guess', async () => {
    const { exitCode, stderr } = await run(['livelock', '--schemes', 'reno']);
    expect(exitCode).toBe(2);
    expect(stderr).toContain('is one of go-back-0');
    expect(stderr).not.toContain('did you mean');
  });
});

describe('a value that cannot be is refused before anything starts', () => {
  it.each([
    ['message can have at most 2GiB', 'livelock', '--message', '3GiB'],
    ['MAS is 100 in a pool of 4 blocks', 'window', '--mas', '100', '--blocks', '4'],
    ['a pool cannot have 16 blocks of 3221225472 bytes', 'window', '--block', '3GiB'],
    ['a pool cannot have 100000 blocks', 'window', '--blocks', '2', '--grow-to', '100000'],
    ['no rate control parameter foo', 'bw', 'write', '--cc-params', 'foo=1', '--bind', HERE],
    ['no rate control parameter foo', 'lat', 'send', '--perftest', '--cc-params', 'foo=1', '--bind', HERE],
  ])('%s', async (words, ...args) => {
    const { exitCode, stdout, stderr } = await run(args);
    expect(stderr).toContain(words);
    expect(exitCode).toBe(2);
    expect(stdout).toBe('');
    // A child's errors begin with its name.
    expect(stderr).toMatch(/^rocev2: (?!server|endpoint|switch)/);
  });
});
