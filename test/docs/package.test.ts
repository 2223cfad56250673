/** What `npm pack` puts into the package: everything it names and links to, and nothing that only this repository needs. */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { isBuilt } from '../e2e/executable.js';
import { parseMarkdown } from './markdown.js';

interface Manifest {
  readonly bin: Record<string, string>;
  readonly exports: Record<string, Record<string, string>>;
}

describe.runIf(isBuilt)('the package', () => {
  const packed = execFileSync('npm', ['pack', '--dry-run', '--ignore-scripts', '--json'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [{ files }] = JSON.parse(packed) as [{ files: readonly { readonly path: string }[] }];
  const paths = new Set(files.map(({ path }) => path));

  it('holds its executable and all its entries, with types', () => {
    const { bin, exports } = JSON.parse(readFileSync('package.json', 'utf8')) as Manifest;
    const entries = [...Object.values(bin), ...Object.values(exports).flatMap((entry) => Object.values(entry))];
    expect(entries.filter((path) => !paths.has(path.replace(/^\.\//, '')))).toEqual([]);
  });

  it('holds what its README links to, and the pages that --help names', () => {
    const { links } = parseMarkdown(readFileSync('README.md', 'utf8'));
    expect(links.filter((link) => !/^[a-z]+:/.test(link) && !paths.has(link))).toEqual([]);
    expect([...paths].filter((path) => /^docs\/(faults|events|estats|switch)\.md$/.test(path))).toHaveLength(4);
  });

  it('holds nothing that is of no use without the repository', () => {
    const useless = /^(src|test|bench|scripts|docs\/api)\/|\.map$|tsbuildinfo|^\./;
    expect([...paths].filter((path) => useless.test(path))).toEqual([]);
  });
});
