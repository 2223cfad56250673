/** Programs and NICs in processes that may not use process_vm_readv(2), as the filter of a container may have it. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { isBuilt, MAIN, Program } from '../../../test/e2e/executable.js';
import { eventually } from '../../../test/support/eventually.js';
import { freePort } from '../../../test/support/free-port.js';
import { listens, missing, PYTHON } from './rig.js';

const SERVER = '127.0.42.7';
const CLIENT = '127.0.42.8';
const FILTER = resolve('packages/ibverbs/test/without-process-vm.py');

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rocev2-verbs-filter-'));
  vi.stubEnv('XDG_RUNTIME_DIR', folder);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

describe.skipIf(!isBuilt || missing('ibv_rc_pingpong').length > 0)('without process_vm_readv', () => {
  it('data are accessed by a descriptor of the program', async () => {
    const port = String(await freePort());
    const pingPong = ['--', 'ibv_rc_pingpong', '-g', '0', '-n', '50', '-c', '-p', port];
    const run = (address: string, ...more: readonly string[]) =>
      new Program(FILTER, [process.execPath, MAIN, 'verbs', '--bind', address, ...pingPong, ...more], PYTHON);
    const server = run(SERVER);
    await eventually(() => listens(Number(port)) || server.process.exitCode !== null);
    const client = run(CLIENT, '127.0.0.1');
    const codes = await Promise.all([server.ended(), client.ended()]);
    expect(codes, server.stderr + client.stderr).toEqual([0, 0]);
    for (const { stdout } of [server, client]) {
      expect(stdout).toMatch(/50 iters in/);
      expect(stdout).not.toMatch(/invalid data/);
    }
  });
});
