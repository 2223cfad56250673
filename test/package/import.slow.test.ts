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
import { dirname, join, resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isBuilt } from '../e2e/executable.js';
import { manifestOfPackage, PACKAGE_FOLDERS } from '../support/installed-package.js';

const FIXTURE = 'test/package/fixtures/loaded-files.mjs';

/** What an import loads: files, their bytes, and the packages beside this one. */
interface Loaded {
  readonly files: readonly string[];
  readonly bytes: number;
  readonly packages: readonly string[];
  readonly builtins: readonly string[];
}

function bytesOf(files: readonly string[]): number {
  return files.reduce((sum, path) => sum + statSync(path).size, 0);
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
    bytes: bytesOf(files),
    packages: [...new Set(packages.filter((name) => name !== undefined))].sort(),
    builtins: urls.filter((url) => url.startsWith('node:')),
  };
}

let project: string;
beforeAll(() => {
  project = realpathSync(mkdtempSync(join(tmpdir(), 'rocev2-import-')));
  mkdirSync(join(project, 'node_modules/@rocev2'), { recursive: true });
  for (const folder of PACKAGE_FOLDERS)
    symlinkSync(resolve(folder), join(project, 'node_modules', manifestOfPackage(folder).name), 'dir');
});
afterAll(() => rmSync(project, { recursive: true, force: true }));

/** Runs a program that has this package in its node_modules. Returns what it prints. */
function run(program: string): string {
  const file = join(project, 'program.mjs');
  writeFileSync(file, program);
  return execFileSync(process.execPath, [file], { encoding: 'utf8' });
}

describe.runIf(isBuilt)('an import from Node', () => {
  /**
   * Entry point, files and bytes at most. What browsers cannot have (native CRC-32, Buffer, files of captures) is in modules of its own, which costs
   * files. The number of files decides how long an import takes: docs/how-to/deploy.md.
   */
  it.each([
    ['rocev2', 64, 891_000],
    ['rocev2/packet', 14, 87_000],
    ['rocev2/storage', 44, 1_292_000],
    ['rocev2/window', 10, 102_000],
    ['rocev2/dgram-ext', 19, 119_000],
    ['rocev2/congestion', 8, 80_000],
    ['@rocev2/lab/fluid', 23, 102_000],
  ])('of %s loads at most %d files and %d bytes', (entry, files, bytes) => {
    const loaded = load(entry);
    expect(loaded.files.length, loaded.files.join('\n')).toBeLessThanOrEqual(files);
    expect(loaded.files.length).toBeGreaterThan(2); // Something was counted.
    expect(loaded.bytes).toBeLessThanOrEqual(bytes);
  });

  /** Entry point; files and bytes at most, its own and those of rocev2; the same beyond what a program has that imports rocev2. */
  it.each([
    ['@rocev2/rpc', [82, 1_092_000], [21, 228_000]],
    ['@rocev2/kv', [85, 1_175_000], [24, 301_000]],
    ['@rocev2/primitives', [84, 1_135_000], [23, 260_000]],
    ['@rocev2/extents', [100, 2_348_000], [39, 1_479_000]],
    ['@rocev2/nvme', [103, 2_278_000], [42, 1_416_000]],
    ['@rocev2/lab/sim', [199, 2_231_000], [139, 1_367_000]],
    ['@rocev2/lab/switch', [88, 1_205_000], [27, 337_000]],
    ['@rocev2/inspect', [88, 1_248_000], [27, 383_000]],
  ] as const)('of %s loads at most %j files and bytes, of which %j beside rocev2', (entry, [files, bytes], beyond) => {
    const [transport, loaded] = [load('rocev2'), load(entry)];
    const [moreFiles, moreBytes] = beyond;
    expect(loaded.files.length, loaded.files.join('\n')).toBeLessThanOrEqual(files);
    expect(loaded.bytes).toBeLessThanOrEqual(bytes);
    const more = loaded.files.filter((path) => !transport.files.includes(path));
    expect(more.length, more.join('\n')).toBeLessThanOrEqual(moreFiles);
    expect(more.length).toBeGreaterThan(1); // Something was counted.
    expect(bytesOf(more)).toBeLessThanOrEqual(moreBytes);
  });

  it('of rocev2 loads no package but two small ones, and no server of HTTP', () => {
    const { packages, builtins } = load('rocev2');
    expect(packages).toEqual(['pure-rand', 'tinyqueue']);
    expect(builtins).toContain('node:dgram');
    expect(builtins).not.toContain('node:http');
  });

  it('of the modules, as bundlers take them, loads two hundred: the count is one', () =>
    expect(load(pathToFileURL(resolve('build/src/index.js')).href).files.length).toBeGreaterThan(200));

  it('gives all entry points, public and internal, the same classes and the same registries', () => {
    const program = `
      import { IpAddress, RoceError, registerRateControl } from 'rocev2';
      import { IpAddress as ofPacket } from 'rocev2/packet';
      import { RoceError as internalError } from 'rocev2/internal/core';
      import { rateControlNames } from 'rocev2/internal/dcqcn';
      import { rateControlNames as ofCopies } from '${pathToFileURL(resolve('build/src/index.js')).href}';
      import { openKv } from '@rocev2/kv';
      registerRateControl({ name: 'shared', summary: 'x', parameters: {}, create: () => {} });
      const thrown = await openKv({}).catch((error) => error);
      console.log(
        IpAddress === ofPacket,
        RoceError === internalError,
        thrown instanceof RoceError,
        rateControlNames().includes('shared'),
        ofCopies().includes('shared'),
      );`;
    expect(run(program)).toBe('true true true true true\n');
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
    for (const folder of PACKAGE_FOLDERS) {
      const entries = Object.values(manifestOfPackage(folder).exports).flatMap((entry) =>
        typeof entry === 'string' || entry['default'] === undefined ? [] : [`${folder}${entry['default']}`],
      );
      const isThere = (path: string) =>
        path.includes('*') ? readdirSync(dirname(path)).length > 10 : existsSync(path);
      expect(entries.filter((path) => !isThere(path))).toEqual([]);
      const files = readdirSync(`${folder}dist`, { recursive: true, encoding: 'utf8' }).filter((name) =>
        name.endsWith('.js'),
      );
      const imported = new Set(files.flatMap((name) => importsOf(`${folder}dist/${name}`)));
      const shared = files.filter((name) => name.startsWith('shared-'));
      expect(shared.filter((name) => !imported.has(name))).toEqual([]);
    }
  });
});

/** The files beside it that a bundle imports. */
function importsOf(path: string): string[] {
  return [...readFileSync(path, 'utf8').matchAll(/"\.\.?\/(shared-\w+\.js)"/g)].map(([, name]) => name);
}
