/** The documentation site has every document, and the checker of its links finds what is dead. */

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, normalize } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const PARTS = 'scripts/site';
/** Pages that `scripts/results-doc.js --site` writes before the site is built. */
const RESULTS = join(PARTS, 'results');

describe('the documentation site', () => {
  it('lists every document in the head of one part', () => {
    const listed = readdirSync(PARTS)
      .filter((name) => name.endsWith('.md'))
      .flatMap((name) => {
        const [, head] = readFileSync(join(PARTS, name), 'utf8').split('---\n');
        return [...head.matchAll(/^ {2}".+": (\S+)$/gm)].map(([, path]) => normalize(join(PARTS, path)));
      })
      .filter((path) => !path.startsWith(RESULTS));
    const packages = readdirSync('packages').map((name) => join('packages', name));
    const documents = ['docs', ...packages.map((folder) => join(folder, 'docs')).filter((folder) => existsSync(folder))]
      .flatMap((folder) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)))
      .filter((path) => path.endsWith('.md') && !path.startsWith(join('docs', 'api')));
    const project = [
      ...['ARCHITECTURE.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'],
      ...['src', ...packages].map((folder) => join(folder, 'README.md')),
    ];
    expect(listed.sort(), 'a new document needs a line in the head and in the table of a page of scripts/site').toEqual(
      [...documents, ...project].sort(),
    );
  });
});

it('summaries of results are those of the JSON files', () => {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/results-doc.js', '--check'], { encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});

describe('the checker of its links', () => {
  let site: string;
  beforeEach(() => {
    site = mkdtempSync(join(tmpdir(), 'rocev2-site-'));
    mkdirSync(join(site, 'a'));
    writeFileSync(join(site, 'index.html'), '<h1 id="top">x</h1><a class="k" href="a/b.html#part">b</a>');
  });
  afterEach(() => rmSync(site, { recursive: true }));

  const check = () => spawnSync(process.execPath, [join(PARTS, 'check-links.js'), site], { encoding: 'utf8' });

  it('accepts links that lead somewhere', () => {
    writeFileSync(
      join(site, 'a/b.html'),
      '<h2 id="part">y</h2><a href="../index.html#top">x</a><a href="https://x.y">z</a>',
    );
    expect(check()).toMatchObject({ status: 0, stdout: '2 pages, 2 links, 0 dead\n' });
  });

  it('names pages, pictures and anchors that are missing', () => {
    writeFileSync(join(site, 'a/b.html'), '<h2 id="other">y</h2><img src="none.png"><a href="../gone.html">x</a>');
    const { status, stderr } = check();
    expect(status).toBe(1);
    expect(stderr).toContain('index.html: a/b.html#part has no such anchor');
    expect(stderr).toContain('a/b.html: none.png is not there');
    expect(stderr).toContain('a/b.html: ../gone.html is not there');
  });
});
