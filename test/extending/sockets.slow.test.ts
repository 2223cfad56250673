/** docs/extending.md through sockets: its program, its command lines, and what is said when something is missing. */

import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isBuilt, rocev2Starter } from '../e2e/executable.js';
import { documentOf } from '../support/documents.js';
import { PageFolder } from './page.js';

const run = promisify(execFile);
const MAIN = resolve('packages/cli/bin/rocev2.js');
/** Addresses of this file alone. */
const SERVER = '127.67.0.1';
const CLIENT = '127.67.0.2';
const TCP_PORT = 27300;

let folder: PageFolder;
beforeAll(() => {
  folder = new PageFolder();
});
afterAll(() => folder.remove());

/** One command of the package, in the folder of the page. */
function rocev2(...args: string[]) {
  return rocev2In(folder.path, ...args);
}

async function rocev2In(
  cwd: string,
  ...args: readonly string[]
): Promise<{ code: number; stdout: string; stderr: string }> {
  try {
    return { code: 0, ...(await run(process.execPath, [MAIN, ...args], { cwd })) };
  } catch (error) {
    return error as { code: number; stdout: string; stderr: string };
  }
}

describe.runIf(isBuilt)('docs/extending.md', () => {
  const start = rocev2Starter();

  it.each(['inline', 'worker'])('its program runs with the %s engine, under loss', async (engine) => {
    const { stdout } = await run(process.execPath, ['transfer.mjs', engine], { cwd: folder.path });
    expect(stdout).toMatch(/^arrived \{[^}]*name: 'capped-repeat'[^}]*inFlightPackets: 64/);
  });

  it('its schemes are those of bw, between two processes', async () => {
    const extensions = [
      '--extension',
      folder.file('capped-repeat.mjs'),
      '--extension',
      folder.file('delay-window.mjs'),
    ];
    const common = ['bw', 'write', '-p', String(TCP_PORT), ...extensions, '--recovery', 'capped-repeat', '--json'];
    const server = start(...common, '--bind', SERVER, '--engine', 'worker');
    await server.writes('stderr', /waiting for/);
    const client = start(
      ...common,
      SERVER,
      '--bind',
      CLIENT,
      ...['--cc', 'delay-window', '--cc-params', 'targetRttNs=2ms', '--loss', 'random=0.01'],
      ...['--recovery-params', 'inFlightPackets=64', '-s', '64KiB', '-n', '50'],
    );
    expect(await client.ended(), client.stderr).toBe(0);
    expect(await server.ended(), server.stderr).toBe(0);
    expect(JSON.parse(client.stdout)).toMatchObject({ recovery: 'capped-repeat', cc: 'delay-window', verified: true });
  });

  it('its schemes are those of livelock and its processes', async () => {
    const args = ['--schemes', 'capped-repeat', '--ops', 'write', '--seconds', '0.3', '--message', '256KiB', '--json'];
    const { stdout, stderr } = await rocev2('livelock', '--extension', 'capped-repeat.mjs', ...args);
    expect(stderr).toBe('');
    const { runs } = JSON.parse(stdout) as { runs: object[] };
    expect(runs).toMatchObject([{ scheme: 'capped-repeat', failure: null, verified: true, closedForm: null }]);
  });

  it('its schemes are those of the simulator, and of the threads of a sweep', async () => {
    const args = [
      'sim',
      'sweep',
      'incast-selective-repeat',
      '--extension',
      'capped-repeat.mjs',
      '--extension=delay-window.mjs',
    ];
    const axes = [
      '--over',
      'nic.recovery=capped-repeat',
      '--over',
      'nic.cc=none,delay-window',
      '--set',
      'duration=1ms',
    ];
    const { code, stdout, stderr } = await rocev2(...args, ...axes, '--json');
    expect([code, stderr]).toEqual([expect.any(Number), expect.not.stringContaining('ERR_')]);
    const { runs } = documentOf('sim-sweep', stdout) as { runs: Array<{ result: { traceHash: string } }> };
    expect(new Set(runs.map(({ result }) => result.traceHash)).size).toBe(2);
  });

  it('a file in a folder without packages is an extension, also in the threads of a sweep', async () => {
    const alone = mkdtempSync(join(tmpdir(), 'rocev2-alone-'));
    try {
      copyFileSync(folder.file('capped-repeat.mjs'), join(alone, 'capped-repeat.mjs'));
      const args = ['sim', 'sweep', 'incast-selective-repeat', '--extension', 'capped-repeat.mjs', '--no-assert'];
      const axes = ['--over', 'nic.recovery=capped-repeat', '--set', 'duration=100us', '--json'];
      const { stderr, code } = await rocev2In(alone, ...args, ...axes);
      expect([code, stderr]).toEqual([0, expect.not.stringContaining('cannot')]);
    } finally {
      rmSync(alone, { recursive: true });
    }
  });

  it('its types are those of the options', async () => {
    folder.write(
      'check.mts',
      `import type { QpAttr } from 'rocev2';
       export const good: QpAttr = { recovery: { name: 'capped-repeat', fewPackets: 4 }, rateControl: { name: 'delay-window', targetRttNs: 1e6 } };
       // @ts-expect-error there is no such parameter
       export const bad: QpAttr = { recovery: { name: 'capped-repeat', packets: 4 } };
       // @ts-expect-error there is no such scheme
       export const worse: QpAttr = { recovery: 'irm' };`,
    );
    const options = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2023'];
    const types = ['--typeRoots', resolve('node_modules/@types'), '--types', 'node'];
    const tsc = resolve('node_modules/typescript/bin/tsc');
    await run(process.execPath, [tsc, ...options, ...types, 'check.mts', 'schemes.d.ts'], { cwd: folder.path });
  });

  it.each([
    ['a scheme that nobody registered', ['livelock', '--schemes', 'capped-repeat'], 2, /is one of go-back-0/],
    ['an unknown rate control', ['bw', 'write', '--cc', 'reno'], 2, /it is one of none, fixed, dcqcn/i],
    [
      'an unknown recovery in a scenario',
      ['sim', 'run', 'pfc-n2', '--set', 'nic.recovery=x'],
      2,
      /there are go-back-n,/,
    ],
    ['a module that is missing', ['bw', 'write', '--extension', 'nothing.mjs'], 1, /no extension file:.*nothing\.mjs/],
    [
      'a module that throws',
      ['bw', 'write', '--extension', 'throws.mjs'],
      2,
      /throws\.mjs cannot be loaded: too bad\n$/,
    ],
    [
      'a name that is taken',
      ['bw', 'write', '--extension', 'twice.mjs'],
      2,
      /'capped-repeat' cannot be registered: the name is taken/,
    ],
    ['a bad table', ['bw', 'write', '--extension', 'table.mjs'], 2, /the default of parameter x is not in its range/],
  ])('%s is refused', async (_, args, exitCode, message) => {
    folder.write('throws.mjs', "throw new Error('too bad\\nin two lines');");
    folder.write(
      'twice.mjs',
      `import './capped-repeat.mjs'; import { registerRecovery } from 'rocev2';
      registerRecovery({ name: 'capped-repeat', summary: 'again', parameters: {}, sender() {}, receiver() {} });`,
    );
    folder.write(
      'table.mjs',
      `import { registerRateControl } from 'rocev2';
      registerRateControl({ name: 'r', summary: 's', parameters: { x: { default: 9, min: 0, max: 1 } }, create() {} });`,
    );
    const { code, stderr } = await rocev2(...args);
    expect(stderr).toMatch(message);
    expect(stderr).not.toContain('TypeError');
    expect(code).toBe(exitCode);
  });

  it('nothing of the page is left out', () => {
    for (const name of ['capped-repeat.mjs', 'delay-window.mjs', 'transfer.mjs', 'schemes.d.ts']) {
      expect(existsSync(folder.file(name)), name).toBe(true);
    }
  });
});
