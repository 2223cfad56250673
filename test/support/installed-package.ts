/** A project of a stranger that has installed the package: what `npm pack` puts into it, and the dependencies that it names. */

import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

/** What package.json says, as far as tests ask. */
export interface Manifest {
  readonly bin: Record<string, string>;
  readonly exports: Record<string, string | Record<string, string>>;
  readonly dependencies: Record<string, string>;
  readonly optionalDependencies: Record<string, string>;
}

/** package.json of this repository. */
export function manifestOfPackage(): Manifest {
  return JSON.parse(readFileSync('package.json', 'utf8')) as Manifest;
}

/** Paths of what `npm pack` would put into the package. */
export function packedPaths(): string[] {
  const packed = execFileSync('npm', ['pack', '--dry-run', '--ignore-scripts', '--json'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [{ files }] = JSON.parse(packed) as [{ files: readonly { readonly path: string }[] }];
  return files.map(({ path }) => path);
}

/** A new folder with the package installed; `type` is that of its own package.json. The caller removes it. */
export function projectWithPackage(type: 'module' | 'commonjs' = 'module'): string {
  const project = realpathSync(mkdtempSync(join(tmpdir(), 'rocev2-project-')));
  const modules = join(project, 'node_modules');
  for (const path of packedPaths()) cpSync(path, join(modules, 'rocev2', path));
  const { dependencies, optionalDependencies } = manifestOfPackage();
  for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
    const installed = resolve('node_modules', name);
    if (!existsSync(installed)) continue; // A native package for another machine.
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(installed, join(modules, name));
  }
  writeFileSync(join(project, 'package.json'), JSON.stringify({ type }));
  return project;
}
