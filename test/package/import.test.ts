/** The entry points as Node loads them from node_modules: few files, and one copy of what they share. */

import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isBuilt } from '../e2e/executable.js';
import { manifestOfPackage } from '../support/installed-package.js';

const FIXTURE = 'test/package/fixtures/loaded-files.mjs';

/** What an import loads: files, their bytes, and the packages beside this one. */
interface Loaded {
  readonly files: readonly string[];
  readonly bytes: number;
  readonly packages: readonly string[];
  readonly builtins: readonly string[];
}

function load(specifier: string): Loaded {
  const printed = execFileSync(process.execPath, [FIXTURE, specifier], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const urls = JSON.parse(printed) as readonly string[];
  const files = urls.filter((url) => url.startsWith('file:')).map((url) => fileURLToPath(url));
  const packages = files.map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]);
  return {
    files,
    bytes: files.reduce((sum, path) => sum + statSync(path).size, 0),
    packages: [...new Set(packages.filter((name) => name !== undefined))].sort(),
    builtins: urls.filter((url) => url.startsWith('node:')),
  };
}

let project: string;
beforeAll(() => {
  project = realpathSync(mkdtempSync(join(tmpdir(), 'rocev2-import-')));
  mkdirSync(join(project, 'node_modules'));
  symlinkSync(resolve('.'), join(project, 'node_modules/rocev2'), 'dir');
});
afterAll(() => rmSync(project, { recursive: true, force: true }));

/** Runs a program that has this package in its node_modules. Returns what it prints. */
function run(program: string): string {
  const file = join(project, 'program.mjs');
  writeFileSync(file, program);
  return execFileSync(process.execPath, [file], { encoding: 'utf8' });
}

describe.runIf(isBuilt)('an import from Node', () => {
  /** Entry point, files and bytes at most. The number of files decides how long an import takes: docs/packaging.md. */
  it.each([
    ['rocev2', 60, 845_000],
    ['rocev2/packet', 15, 100_000],
    ['rocev2/storage', 42, 1_300_000],
    ['@rocev2/nvme', 38, 1_145_000],
    ['rocev2/window', 20, 130_000],
    ['@rocev2/rpc', 20, 120_000],
    ['@rocev2/kv', 33, 432_000],
    ['@rocev2/extents', 39, 638_000],
    ['@rocev2/primitives', 30, 387_000],
  ])('of %s loads at most %d files and %d bytes', (entry, files, bytes) => {
    const loaded = load(entry);
    expect(loaded.files.length, loaded.files.join('\n')).toBeLessThanOrEqual(files);
    expect(loaded.files.length).toBeGreaterThan(2); // Something was counted.
    expect(loaded.bytes).toBeLessThanOrEqual(bytes);
  });

  it('of rocev2 loads no package but two small ones, and no server of HTTP', () => {
    const { packages, builtins } = load('rocev2');
    expect(packages).toEqual(['pure-rand', 'tinyqueue']);
    expect(builtins).toContain('node:dgram');
    expect(builtins).not.toContain('node:http');
  });

  it('of the modules, as bundlers take them, loads two hundred: the count is one', () =>
    expect(load(pathToFileURL(resolve('build/src/index.js')).href).files.length).toBeGreaterThan(200));

  it('gives all entry points the same classes and the same registries', () => {
    const program = `
      import { IpAddress, registerRateControl } from 'rocev2';
      import { IpAddress as ofPacket } from 'rocev2/packet';
      import { rateControlNames } from '${pathToFileURL(resolve('build/src/index.js')).href}';
      registerRateControl({ name: 'shared-by-copies', summary: 'x', parameters: {}, create: () => {} });
      console.log(IpAddress === ofPacket, rateControlNames().includes('shared-by-copies'));`;
    expect(run(program)).toBe('true true\n');
  });

  it('opens devices with a NIC in a worker and with telemetry, from files beside it', () => {
    const program = `
      import { openDevice } from 'rocev2';
      const device = await openDevice({ address: '127.0.2.9', udpPort: 0, engine: 'worker', estats: { http: '127.0.2.9:0' } });
      await device.close();
      console.log('closed');`;
    expect(run(program)).toBe('closed\n');
  });

  it('finds the packages beside it under node -e, too, where __filename is a global', () => {
    const described = `
      const device = await openDevice({ address: '127.0.2.9', udpPort: 0, engine: 'inline' });
      console.log(device.portDescription.replace(/, CRC.*/, '')); // The CRC is chosen by a measurement.
      await device.close();`;
    const ofProgram = run(`import { openDevice } from 'rocev2';${described}`);
    const script = `import('rocev2').then(async ({ openDevice }) => {${described}})`;
    expect(execFileSync(process.execPath, ['-e', script], { encoding: 'utf8', cwd: project })).toBe(ofProgram);
  });

  it('starts the thread of the NIC from a program that Node has as a string', () => {
    const program = `
      import { openDevice } from 'rocev2';
      const device = await openDevice({ address: '127.0.2.9', udpPort: 0, engine: 'worker' });
      await device.close();
      console.log('closed');`;
    const said = execFileSync(process.execPath, ['--input-type=module', '-e', program], {
      encoding: 'utf8',
      cwd: project,
    });
    expect(said).toBe('closed\n');
  });

  it('finds a file of its own for each entry, and nothing there that no build has made', () => {
    const entries = Object.values(manifestOfPackage().exports).flatMap((entry) =>
      typeof entry === 'string' ? [] : [entry['default']],
    );
    expect(entries.filter((path) => !existsSync(path))).toEqual([]);
    const files = readdirSync('dist/bundle').filter((name) => name.endsWith('.js'));
    const imported = new Set(files.flatMap((name) => importsOf(`dist/bundle/${name}`)));
    const shared = files.filter((name) => name.startsWith('shared-'));
    expect(shared.filter((name) => !imported.has(name))).toEqual([]);
  });
});

function importsOf(path: string): string[] {
  return [...readFileSync(path, 'utf8').matchAll(/"\.\/(shared-\w+\.js)"/g)].map(([, name]) => name);
}
