import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.js';
import { CommandFailure, describeFailure, exitCodeOf } from '../../src/cli/exit.js';
import { RoceError } from '../../src/core/errors.js';
import { run } from './run-in-process.js';

const version = (JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }).version;

describe('rocev2', () => {
  it('--help lists every command on stdout and exits 0', async () => {
    const { exitCode, stdout, stderr } = await run(['--help']);
    expect(exitCode).toBe(0);
    expect(stderr).toBe('');
    for (const { name } of COMMANDS) expect(stdout).toMatch(new RegExp(`^ {2}${name} `, 'm'));
  });

  it('--version prints the version of the package', async () => {
    expect(await run(['--version'])).toEqual({ exitCode: 0, stdout: `${version}\n`, stderr: '' });
  });

  it('without a command explains itself on stderr and exits 2', async () => {
    const { exitCode, stdout, stderr } = await run([]);
    expect(exitCode).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toContain('Usage: rocev2');
  });

  it('an unknown command exits 2 and suggests the one that was meant', async () => {
    const { exitCode, stdout, stderr } = await run(['decod', 'x.pcapng']);
    expect(exitCode).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toContain("rocev2: unknown command 'decod'");
    expect(stderr).toContain('Did you mean decode?');
  });

  it('help for an unknown command says so, too', async () => {
    const { exitCode, stdout, stderr } = await run(['help', 'decod']);
    expect(exitCode).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toContain("rocev2: unknown command 'decod'\n(Did you mean decode?)");
    expect((await run(['help', 'decode'])).stdout).toContain('Usage: rocev2 decode');
  });

  it('an error in a command of a command names the help of just that one', async () => {
    const { exitCode, stderr } = await run(['sim', 'run']);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("Run 'rocev2 sim run --help'");
  });

  it('an unknown option exits 2, suggests the one that was meant, and names the help', async () => {
    const { exitCode, stderr } = await run(['decode', '--jsn', 'x.pcapng']);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("rocev2: unknown option '--jsn'");
    expect(stderr).toContain('Did you mean --json?');
    expect(stderr).toContain("Run 'rocev2 decode --help'");
  });
});

describe('every command', () => {
  it.each(COMMANDS.map(({ name }) => [name]))('%s --help has examples and exits 0', async (name) => {
    const { exitCode, stdout } = await run([name, '--help']);
    expect(exitCode).toBe(0);
    expect(stdout).toContain(`Usage: rocev2 ${name}`);
    expect(stdout).toMatch(new RegExp(`Examples:\\n(  .*rocev2 ${name}.*\\n?){2,}`));
  });
});

describe('failures', () => {
  it.each([
    [new RoceError('ERR_ROCE_INVALID_ARGUMENT', 'no'), 2],
    [new RoceError('ERR_ROCE_CONNECT', 'no'), 3],
    [new RoceError('ERR_ROCE_IO', 'no'), 1],
    [new CommandFailure(4, 'differs'), 4],
    [new CommandFailure(130), 130],
    [new Error('a defect'), 1],
  ])('%s exits %i', (error, exitCode) => expect(exitCodeOf(error)).toBe(exitCode));

  it('an expected failure is one line with its hint; ROCEV2_DEBUG=1 adds the stack', () => {
    const error = new RoceError('ERR_ROCE_IO', 'port 4791 is taken', 'stop the other endpoint');
    expect(describeFailure(error, {})).toBe('rocev2: port 4791 is taken (stop the other endpoint)');
    expect(describeFailure(error, { ROCEV2_DEBUG: '1' })).toContain('run.test.ts');
  });

  it('a defect keeps its stack, so that it can be reported', () => {
    expect(describeFailure(new TypeError('x is undefined'), {})).toContain('run.test.ts');
  });
});
