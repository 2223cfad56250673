/** What `npm pack` puts into the packages: everything that they name and link to, and nothing that only this repository needs. */

import { existsSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isBuilt } from '../e2e/executable.js';
import { manifestOfPackage, PACKAGE_FOLDERS, packedPaths } from '../support/installed-package.js';
import { parseMarkdown } from './markdown.js';

/** An entry of the lock file, as far as it matters here. */
interface Locked {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly hasInstallScript?: boolean;
  /** Of a link to a workspace: its folder. */
  readonly resolved?: string;
  readonly link?: boolean;
}

type LockedPackages = Readonly<Record<string, Locked>>;

const PICTURE = /\.(png|svg|gif|webp)$/;
/** Entry points as sources, for the tools of this repository; no other program sets this condition. */
const SOURCE = '@rocev2/source';

/** The entries of the lock file that come with these, as npm resolves their dependencies. */
function broughtBy(locked: LockedPackages, roots: readonly string[]): Set<string> {
  const brought = new Set<string>();
  const resolveFrom = (from: string, name: string): string | undefined => {
    for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
      const path = `${at === '' ? '' : `${at}/`}node_modules/${name}`;
      if (path in locked) return path;
      if (at === '') return undefined; // A native package for another machine.
    }
  };
  const wanted = [...roots];
  while (wanted.length > 0) {
    const path = wanted.pop()!;
    if (brought.has(path)) continue;
    brought.add(path);
    const { dependencies, optionalDependencies, link, resolved } = locked[path];
    if (link === true) wanted.push(resolved!);
    const names = Object.keys({ ...dependencies, ...optionalDependencies });
    wanted.push(...names.flatMap((name) => resolveFrom(path, name) ?? []));
  }
  return brought;
}

describe.runIf(isBuilt)('the packages', () => {
  const packed = packedPaths();
  const packages = PACKAGE_FOLDERS.map((folder) => {
    const manifest = manifestOfPackage(folder);
    return { folder, manifest, name: manifest.name, paths: packed.get(manifest.name)! };
  });
  /** Paths in this repository of the files of all tarballs. */
  const inTarballs = new Set(packages.flatMap(({ folder, paths }) => paths.map((path) => `${folder}${path}`)));

  it.each(packages)('$name holds its executable and all its entries, with types', ({ folder, manifest, paths }) => {
    const { bin = {}, exports } = manifest;
    const entries = Object.values(exports).map((entry) => (typeof entry === 'string' ? { default: entry } : entry));
    const isThere = (path: string) => {
      const [before, after = ''] = path.replace(/^\.\//, '').split('*');
      return paths.some((packed) => packed.startsWith(before) && packed.endsWith(after));
    };
    const loaded = entries.flatMap((entry) =>
      Object.entries(entry).flatMap(([condition, path]) =>
        condition === SOURCE || condition === 'types' ? [] : [path],
      ),
    );
    expect([...Object.values(bin), ...loaded].filter((path) => !isThere(path))).toEqual([]);
    // Declarations are made when a tarball is; published-types.test.ts reads them. Here: each is that of the entry's source.
    // An entry that only the sources of this repository import has nothing that ships.
    for (const entry of entries.filter((entry) => SOURCE in entry && Object.keys(entry).length > 1)) {
      const source = posix.join(folder, entry[SOURCE]);
      expect(entry['types']).toBe(`./dist/types/${source.replace(/ts$/, 'd.ts')}`);
      expect(source.includes('*') || existsSync(source), source).toBe(true);
    }
  });

  it('have one executable, rocev2', () => {
    const executables = packages.flatMap(({ name, manifest }) =>
      Object.keys(manifest.bin ?? {}).map((bin) => [name, bin]),
    );
    expect(executables).toEqual([['@rocev2/cli', 'rocev2']]);
  });

  it.each(packages)(
    '$name holds its README; it or another one holds what that links to, pictures excepted',
    ({ folder, paths }) => {
      expect(paths).toContain('README.md');
      const { links } = parseMarkdown(readFileSync(`${folder}README.md`, 'utf8'));
      const files = links
        .filter((link) => !/^[a-z]+:/.test(link) && !PICTURE.test(link))
        .map((link) => posix.join(folder, link.replace(/#.*/, '')));
      expect(files.filter((path) => !inTarballs.has(path))).toEqual([]);
    },
  );

  it('hold the pages that --help names', () => {
    const named = [
      'docs/faults.md',
      'docs/events.md',
      'packages/dashboard/docs/estats.md',
      'packages/lab/docs/switch.md',
    ];
    expect(named.filter((path) => !inTarballs.has(path))).toEqual([]);
  });

  it.each(packages)('$name holds nothing that is of no use without the repository', ({ paths }) => {
    const useless = /^(src|test|bench|scripts|packages|docs\/api)\/|\.map$|tsbuildinfo|^\./;
    expect(paths.filter((path) => useless.test(path))).toEqual([]);
    expect(paths.filter((path) => path.startsWith('docs/') && PICTURE.test(path))).toEqual([]);
  });

  it.each(packages)(
    '$name tells its package.json to programs, and runs no script where it is installed',
    ({ folder }) => {
      const { exports, scripts } = JSON.parse(readFileSync(`${folder}package.json`, 'utf8'));
      expect(exports['./package.json']).toBe('./package.json');
      // npm warns of these: the last one runs for packages from git, folders and tarballs.
      expect(['preinstall', 'install', 'postinstall', 'prepare'].filter((name) => name in scripts)).toEqual([]);
    },
  );

  it('bring no dependency that runs a script where it is installed', () => {
    const { packages: locked } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as { packages: LockedPackages };
    const brought = broughtBy(
      locked,
      PACKAGE_FOLDERS.map((folder) => folder.replace(/\/$/, '')),
    );
    expect([...brought].filter((path) => locked[path].hasInstallScript === true)).toEqual([]);
    expect(brought).toContain('node_modules/zod');
    // Of development alone, and of an optional peer, which no package brings.
    for (const path of ['node_modules/esbuild', 'node_modules/msgpackr-extract']) {
      expect(locked[path].hasInstallScript).toBe(true);
      expect(brought).not.toContain(path);
    }
  });
});
