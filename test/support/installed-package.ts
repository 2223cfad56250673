/** A project of a stranger that has installed the packages: what `npm pack` puts into them, and the dependencies that they name. */

import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

/** What package.json says, as far as tests ask. */
export interface Manifest {
  readonly name: string;
  readonly bin?: Record<string, string>;
  readonly exports: Record<string, string | Record<string, string>>;
  readonly dependencies: Record<string, string>;
  readonly optionalDependencies?: Record<string, string>;
}

/** Folders of the packages, from the root; that of the transport is ''. */
export const PACKAGE_FOLDERS: readonly string[] = ['', ...readdirSync('packages').map((name) => `packages/${name}/`)];

/** package.json of a package of this repository; that of the transport without a folder. */
export function manifestOfPackage(folder = ''): Manifest {
  return JSON.parse(readFileSync(`${folder}package.json`, 'utf8')) as Manifest;
}

/** What programs can import: entry points without those of `rocev2/internal/*`, which only these packages use. */
export const SPECIFIERS: readonly string[] = PACKAGE_FOLDERS.map((folder) => manifestOfPackage(folder)).flatMap(
  ({ name, exports }) =>
    Object.entries(exports)
      .filter(([entry, target]) => typeof target === 'object' && 'default' in target && !entry.includes('*'))
      .map(([entry]) => `${name}${entry.slice(1)}`),
);

/** By the name of a package: the paths of what `npm pack` would put into it. */
export function packedPaths(): ReadonlyMap<string, readonly string[]> {
  const options = ['--dry-run', '--ignore-scripts', '--json', '--workspaces', '--include-workspace-root'];
  const printed = execFileSync('npm', ['pack', ...options], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const packed = JSON.parse(printed) as ReadonlyArray<{
    readonly name: string;
    readonly files: ReadonlyArray<{ readonly path: string }>;
  }>;
  return new Map(packed.map(({ name, files }) => [name, files.map(({ path }) => path)]));
}

/** A new folder with the packages installed; `type` is that of its own package.json. The caller removes it. */
export function projectWithPackage(type: 'module' | 'commonjs' = 'module'): string {
  const project = realpathSync(mkdtempSync(join(tmpdir(), 'rocev2-project-')));
  const modules = join(project, 'node_modules');
  const packed = packedPaths();
  for (const folder of PACKAGE_FOLDERS) {
    const { name } = manifestOfPackage(folder);
    for (const path of packed.get(name)!) cpSync(`${folder}${path}`, join(modules, name, path));
  }
  for (const folder of PACKAGE_FOLDERS) {
    const { dependencies, optionalDependencies } = manifestOfPackage(folder);
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      const installed = resolve('node_modules', name);
      if (packed.has(name) || existsSync(join(modules, name))) continue;
      if (!existsSync(installed)) continue; // A native package for another machine.
      mkdirSync(dirname(join(modules, name)), { recursive: true });
      symlinkSync(installed, join(modules, name));
    }
  }
  writeFileSync(join(project, 'package.json'), JSON.stringify({ type }));
  return project;
}
