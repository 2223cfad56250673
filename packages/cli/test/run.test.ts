import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { RoceError } from '../../../src/core/errors.js';
import { COMMAND_GROUPS } from '../../command/src/command-entry.js';
import { CommandFailure, describeFailure, exitCodeOf } from '../../command/src/exit.js';
import { COMMANDS } from '../src/commands.js';
import { run } from './run-in-process.js';

const version = (JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }).version;

describe('rocev2', () => {
  it('--help lists every command on stdout and exits 0', async () => {
    const { exitCode, stdout, stderr } = await run(['--help']);
    expect(exitCode).toBe(0);
    expect(stderr).toBe('');
    for (const { name } of COMMANDS) expect(stdout).toMatch(new RegExp(`^ {2}${name} `, 'm'));
    expect(stdout.split('\n').filter((line) => /^\S.*:$/.test(line))).toEqual([
      'Options:',
      ...COMMAND_GROUPS.map((group) => `${group}:`),
    ]);
  });

  it('--help lists each command in its group, one line each, and the monitors by this word', async () => {
    const { stdout } = await run(['--help']);
    for (const { name, group, summary } of COMMANDS) {
      const section = stdout
        .split(`${group}:\n`)[1]
        .split('\n\n')[0]
        .replaceAll(/\n {4,}/g, ' ');
      expect(section).toMatch(new RegExp(`^ {2}${name}( \\[.*| <.*)? +`, 'm'));
      expect(section).toContain(summary.slice(1));
    }
    const monitors = COMMANDS.filter(({ summary }) => summary.startsWith('monitor running servers'));
    expect(monitors.map(({ name }) => name)).toEqual(['dashboard', 'estats']);
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

  it('help for a command of a command is its --help; a word that is none is refused', async () => {
    const { exitCode, stdout } = await run(['help', 'sim', 'run']);
    expect([exitCode, stdout]).toEqual([0, (await run(['sim', 'run', '--help'])).stdout]);
    expect(stdout).toContain('Usage: rocev2 sim run');
    expect((await run(['help', 'bw', 'write'])).stdout).toContain('Usage: rocev2 bw');
    const stray = await run(['help', 'sim', 'rn']);
    expect([stray.exitCode, stray.stderr]).toEqual([2, expect.stringContaining('Did you mean run?')]);
  });

  it.each([
    [['sim', 'run', 'dcqcn-n2-4su'], "there is no scenario 'dcqcn-n2-4su' (did you mean 'dcqcn-n2-4us'?)"],
    [['sim', 'run', 'xyzzy'], "there is no scenario 'xyzzy' ('rocev2 sim list' shows all)"],
    [['bw', 'write', '--recovery', 'go-bak-n'], '(did you mean go-back-n?)'],
    [['bw', 'write', '--cc-params', 'nonsense=1'], 'nonsense'],
    [['bw', 'write', '--cc', 'dcqcn', '--cc-params', 'preset=x'], 'there is no preset x'],
    [['lat', 'send', '--recovery-params', 'x'], "'x' is not parameter=value"],
    [['disk', 'bench', '--recovery-params', 'x'], "'x' is not parameter=value"],
  ])('%j exits 2 before anything is started', async (args, words) => {
    const { exitCode, stderr } = await run(args);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(words)]);
  });

  it.each([
    [['decode', '/none/x']],
    [['sim', 'run', '/none/x']],
    [['switch', '--config', '/none/x']],
    [['report', '/none/x']],
  ])('%j: a file that is not there exits 1, in the same words', async (args) => {
    expect(await run(args)).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: 'rocev2: cannot read /none/x: there is no such file\n',
    });
  });

  it.each([
    [{ name: 'x' }, ['duration: is missing', 'topology: is missing']],
    [{ name: 'x', topology: 5 }, ['topology: ']],
    [[], ['the file: must be an object']],
  ])('a scenario file with %j: what is wrong is said without words of a library', async (scenario, words) => {
    const folder = mkdtempSync(join(tmpdir(), 'rocev2-words-'));
    const file = join(folder, 'scenario.json');
    writeFileSync(file, JSON.stringify(scenario));
    const { exitCode, stderr } = await run(['sim', 'run', file]);
    rmSync(folder, { recursive: true });
    expect(exitCode).toBe(2);
    for (const word of words) expect(stderr).toContain(word);
    expect(stderr).not.toMatch(/Invalid input|received|expected/);
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

describe('options that many commands share', () => {
  it('are in --help-all only, under their headings', async () => {
    const short = (await run(['bw', '--help'])).stdout;
    const { exitCode, stdout } = await run(['bw', '--help-all']);
    expect(exitCode).toBe(0);
    for (const option of ['--engine', '--recovery', '--cc', '--psk']) {
      expect(short).not.toMatch(new RegExp(`^ {2}${option} `, 'm'));
      expect(stdout).toMatch(new RegExp(`^ {2}${option} `, 'm'));
    }
    expect(short).toContain('--help-all');
    expect(stdout).toMatch(/^Network options:\n[\s\S]*^Security options:\n/m);
    expect((await run(['sim', 'list', '--help'])).stdout).not.toContain('--help-all');
  });

  it.each([
    ['livelock', '--drop', 'every=x'],
    ['livelock', '--seconds', '0'],
    ['demo', '--seconds', '0'],
    ['switch', '--loss', 'every=x'],
    ['bw write', '--loss', 'every=x'],
    ['nvme target --disk memory --size 1MiB', '--fault', 'x=1'],
  ])('%s has %s as an old spelling', async (command, option, wrong) => {
    const { exitCode, stderr } = await run([...command.split(' '), option, wrong]);
    expect([exitCode, stderr]).toEqual([2, expect.not.stringContaining('unknown option')]);
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
