import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const MAIN = 'packages/cli/bin/rocev2.js';

/** Runs the built executable; `readBytes` closes the pipe from stdout after that much, as `head` does. */
function execute(args: string[], readBytes = Number.POSITIVE_INFINITY) {
  return new Promise<{ code: number | null; signal: string | null; stdout: string; stderr: string }>((resolve) => {
    const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (chunk) => {
      stdout += chunk;
      if (stdout.length >= readBytes) child.stdout.destroy();
    });
    child.stderr.on('data', (chunk) => {
      stderr += chunk;
    });
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
}

// `npm test` builds first; a bare vitest run of a fresh checkout has nothing to execute.
describe.skipIf(!existsSync(MAIN))('the executable', () => {
  it('prints its help and exits 0', async () => {
    const { code, stdout } = await execute(['--help']);
    expect(code).toBe(0);
    expect(stdout).toContain('Usage: rocev2');
  });

  it('a reader that has seen enough ends it quietly', async () => {
    const { code, stderr } = await execute(['decode', '--json', 'test/golden/nvmeof-rdma-v4.pcapng'], 1);
    expect(stderr).toBe('');
    expect(code).toBe(0);
  });

  it('a failure sets the exit code', async () => {
    const { code, stdout, stderr } = await execute(['decode', 'no-such-file.pcapng']);
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: '',
      stderr: 'rocev2: cannot read no-such-file.pcapng: there is no such file\n',
    });
  });
});
