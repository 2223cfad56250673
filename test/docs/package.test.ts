/** What `npm pack` puts into the package: everything it names and links to, and nothing that only this repository needs. */

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { isBuilt } from '../e2e/executable.js';
import { manifestOfPackage, packedPaths } from '../support/installed-package.js';
import { parseMarkdown } from './markdown.js';

/** An entry of the lock file, as far as it matters here. */
interface Locked {
  readonly dev?: boolean;
  readonly hasInstallScript?: boolean;
}

const PICTURE = /\.(png|svg|gif|webp)$/;

describe.runIf(isBuilt)('the package', () => {
  const paths = new Set(packedPaths());

  it('holds its executable and all its entries, with types', () => {
    const { bin, exports } = manifestOfPackage();
    const targets = Object.values(exports).flatMap((entry) =>
      typeof entry === 'string' ? [entry] : Object.values(entry),
    );
    const entries = [...Object.values(bin), ...targets];
    const isThere = (path: string) => {
      const [before, after = ''] = path.replace(/^\.\//, '').split('*');
      return [...paths].some((packed) => packed.startsWith(before) && packed.endsWith(after));
    };
    expect(entries.filter((path) => !isThere(path))).toEqual([]);
  });

  it('holds what its README links to, pictures excepted, and the pages that --help names', () => {
    const { links } = parseMarkdown(readFileSync('README.md', 'utf8'));
    expect(links.filter((link) => !/^[a-z]+:/.test(link) && !PICTURE.test(link) && !paths.has(link))).toEqual([]);
    expect([...paths].filter((path) => /^docs\/(faults|events|estats|switch)\.md$/.test(path))).toHaveLength(4);
  });

  it('holds nothing that is of no use without the repository', () => {
    const useless = /^(src|test|bench|scripts|docs\/api)\/|\.map$|tsbuildinfo|^\./;
    expect([...paths].filter((path) => useless.test(path))).toEqual([]);
    expect([...paths].filter((path) => path.startsWith('docs/') && PICTURE.test(path))).toEqual([]);
  });

  it('tells its package.json to programs, and runs no script where it is installed', () => {
    const { exports, scripts } = JSON.parse(readFileSync('package.json', 'utf8'));
    expect(exports['./package.json']).toBe('./package.json');
    // npm warns of these: the last one runs for packages from git, folders and tarballs.
    expect(['preinstall', 'install', 'postinstall', 'prepare'].filter((name) => name in scripts)).toEqual([]);
  });

  it('has no dependency that runs a script where it is installed', () => {
    const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as { packages: Record<string, Locked> };
    const scripted = Object.entries(packages).filter(([, locked]) => locked.hasInstallScript === true);
    expect(scripted.filter(([, locked]) => locked.dev !== true).map(([path]) => path)).toEqual([]);
    expect(scripted.map(([path]) => path)).toContain('node_modules/esbuild'); // One of ours alone.
  });
});
