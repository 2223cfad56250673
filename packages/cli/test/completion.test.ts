import { execFile, execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { COMMANDS } from '../src/commands.js';
import { run } from './run-in-process.js';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
const isThere = (shell: string) => {
  try {
    execFileSync(shell, ['-c', 'true']);
    return true;
  } catch {
    return false;
  }
};

let folder: string;
const scripts: Record<string, string> = {};
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rocev2-completion-'));
  for (const shell of SHELLS) {
    const { exitCode, stdout } = await run(['completion', shell]);
    expect(exitCode).toBe(0);
    scripts[shell] = join(folder, shell);
    await writeFile(scripts[shell], stdout);
  }
});
afterAll(() => rm(folder, { recursive: true }));

const execute = async (shell: string, args: readonly string[]) => (await promisify(execFile)(shell, args)).stdout;

/** What bash offers for the last word. */
async function inBash(...words: readonly string[]): Promise<string[]> {
  const program =
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is bash
    'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _rocev2; printf "%s\\n" "${COMPREPLY[@]}"';
  const out = await execute('bash', ['-c', program, 'bash', scripts['bash'], 'rocev2', ...words]);
  return out.split('\n').filter((line) => line !== '');
}

describe.skipIf(!isThere('bash'))('completion in bash', () => {
  it('offers every command', async () => {
    expect(await inBash('')).toEqual(expect.arrayContaining(COMMANDS.map(({ name }) => name)));
    expect(await inBash('dash')).toEqual(['dashboard']);
  });

  it('offers the options and words of a command, and of a command of a command', async () => {
    expect(await inBash('bw', '--recovery-')).toEqual(['--recovery-params']);
    expect(await inBash('bw', 're')).toEqual(['read']);
    expect(await inBash('sim', 'r')).toEqual(['run']);
    expect(await inBash('sim', 'run', '--re')).toEqual(['--report']);
    expect(await inBash('sim', 'list', '--re')).toEqual([]);
    expect(await inBash('bw', '--help-')).toEqual(['--help-all']);
  });

  it('offers one spelling of an option, and none that the command refuses', async () => {
    expect(await inBash('bw', '--faul')).toEqual(['--faults']);
    expect(await inBash('bw', '--loss')).toEqual([]);
    expect(await inBash('bw', '--use-s')).toEqual([]);
  });

  it('offers the values of an option, also behind others', async () => {
    expect(await inBash('bw', 'write', '-s', '4096', '--recovery', 'go')).toEqual(['go-back-n', 'go-back-0']);
    expect(await inBash('bw', '--mtu', '1')).toEqual(['1024']);
  });

  it('leaves values of any form to the shell, which offers files', async () => {
    expect(await inBash('bw', '--pcap', '')).toEqual([]);
    const registered = await execute('bash', ['-c', 'source "$1"; complete -p rocev2', 'bash', scripts['bash']]);
    expect(registered.trim()).toBe('complete -o default -F _rocev2 rocev2');
  });
});

describe.skipIf(!isThere('zsh'))('completion in zsh', () => {
  it('is a script that zsh understands, and that registers itself', async () => {
    const program = 'autoload -U compinit && compinit -D -u; source "$1"; print $_comps[rocev2]';
    expect((await execute('zsh', ['-f', '-c', program, 'zsh', scripts['zsh']])).trim()).toBe('_rocev2');
  });
});

describe.skipIf(!isThere('fish'))('completion in fish', () => {
  const inFish = async (line: string) =>
    (await execute('fish', ['--no-config', '-c', `source ${scripts['fish']}; complete -C ${JSON.stringify(line)}`]))
      .split('\n')
      .map((text) => text.split('\t')[0])
      .filter((word) => word !== '');

  it('offers commands, options and values', async () => {
    expect(await inFish('rocev2 dash')).toEqual(['dashboard']);
    expect(await inFish('rocev2 bw --recov')).toEqual(['--recovery']);
    expect(await inFish('rocev2 bw --recovery go')).toEqual(expect.arrayContaining(['go-back-0', 'go-back-n']));
    expect(await inFish('rocev2 sim r')).toContain('run');
  });
});

describe('rocev2 completion', () => {
  it('knows three shells', async () => {
    const { exitCode, stderr } = await run(['completion', 'tcsh']);
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(/bash, zsh, fish/);
  });
});
