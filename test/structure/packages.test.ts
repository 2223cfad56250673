/** What every package of this repository has, and how packages reach each other. */

import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { existsSync, PACKAGES, parse, readFileSync, sourcesOf } from './product-files.js';

interface PackageJson {
  readonly name: string;
  readonly version: string;
  readonly exports: Readonly<Record<string, Readonly<Record<string, string>> | string>>;
  readonly dependencies: Readonly<Record<string, string>>;
}

const manifestOf = (folder: string): PackageJson => JSON.parse(readFileSync(`${folder}package.json`, 'utf8'));
const wordsIn = (path: string) => readFileSync(path, 'utf8').split(/\s+/).filter(Boolean).length;

/** Modules and symbols of `rocev2/internal/*`: both may only fall. (`wakeWhenDue` came with leases that ended never, `readPrivateFile`, `FairQueue` and `FairClient` with limits, rings and their events with `@rocev2/ibverbs`, the connection protocol without queue pairs with its commands of librdmacm, `RECOVERY_API` with schemes that are pasted into the page, `RefusedPeers` with the one log of refused peers of disks, NVMe and kv.) */
const INTERNAL_MODULES_MAX = 60;
const INTERNAL_SYMBOLS_MAX = 602;

/** Bare specifiers that a file imports. */
function packagesImportedBy(path: string): string[] {
  return ts
    .preProcessFile(readFileSync(path, 'utf8'))
    .importedFiles.map(({ fileName }) => fileName)
    .filter((name) => !name.startsWith('.') && !name.startsWith('node:'));
}

describe.each(PACKAGES.filter((folder) => folder !== ''))('%s', (folder) => {
  const manifest = manifestOf(folder);

  it('has a README of at most 300 words that says what it may import and how it is tested', () => {
    const readme = readFileSync(`${folder}README.md`, 'utf8');
    expect(wordsIn(`${folder}README.md`)).toBeLessThanOrEqual(300);
    for (const part of ['**May import**', '**Tests**', '```', `npm test -w ${folder.slice(0, -1)}`]) {
      expect(readme).toContain(part);
    }
  });

  it('has the version of the transport, and names exact versions', () => {
    expect(manifest.version).toBe(manifestOf('').version);
    for (const [name, version] of Object.entries(manifest.dependencies)) {
      expect(version, name).toMatch(/^\d+\.\d+\.\d+$/);
    }
  });

  it('depends on what it imports, and on nothing else', () => {
    const imported = new Set(
      sourcesOf(folder)
        .flatMap(packagesImportedBy)
        .map((name) =>
          name
            .split('/')
            .slice(0, name.startsWith('@') ? 2 : 1)
            .join('/'),
        ),
    );
    const { peerDependencies = {} } = manifest as { peerDependencies?: Record<string, string> };
    const declared = Object.keys({ ...manifest.dependencies, ...peerDependencies });
    expect(declared.toSorted()).toEqual([...imported].sort());
  });

  it('has a source for each entry point', () => {
    const entries = Object.values(manifest.exports).filter((entry) => typeof entry !== 'string');
    for (const { '@rocev2/source': source } of entries) expect(existsSync(`${folder}${source}`), source).toBe(true);
  });
});

describe('rocev2/internal', () => {
  const files = sourcesOf('').filter((path) => path.startsWith('src/internal/'));
  const exportsOf = (path: string) => parse(path).statements.filter(ts.isExportDeclaration);

  it('has few modules, and few names', () => {
    const names = files.flatMap(exportsOf).flatMap(({ exportClause }) => {
      return exportClause !== undefined && ts.isNamedExports(exportClause) ? [...exportClause.elements] : [];
    });
    expect(files.length).toBeGreaterThan(10); // Something was counted.
    expect(files.length).toBeLessThanOrEqual(INTERNAL_MODULES_MAX);
    expect(names.length).toBeGreaterThan(100);
    expect(names.length).toBeLessThanOrEqual(INTERNAL_SYMBOLS_MAX);
  });

  it('names what it exports, and contains no code', () => {
    for (const path of files) {
      const { statements } = parse(path);
      expect(statements.filter((node) => !ts.isExportDeclaration(node)).length, path).toBe(0);
      const whole = exportsOf(path).filter(({ exportClause }) => exportClause === undefined);
      expect(whole.length, path).toBe(0);
    }
  });

  it('exports only what packages use', () => {
    const used = new Set<string>();
    for (const path of PACKAGES.filter((folder) => folder !== '').flatMap(sourcesOf)) {
      for (const node of parse(path).statements) {
        if (!ts.isImportDeclaration(node) && !ts.isExportDeclaration(node)) continue;
        const from = (node.moduleSpecifier as ts.StringLiteral | undefined)?.text ?? '';
        if (!from.startsWith('rocev2/internal/')) continue;
        const names = ts.isImportDeclaration(node) ? node.importClause?.namedBindings : node.exportClause;
        if (names === undefined || !(ts.isNamedImports(names) || ts.isNamedExports(names))) continue;
        for (const { name, propertyName } of names.elements) {
          used.add(`${from.slice('rocev2/internal/'.length)} ${(propertyName ?? name).text}`);
        }
      }
    }
    const exported = files.flatMap((path) =>
      exportsOf(path).flatMap(({ exportClause }) => {
        if (exportClause === undefined || !ts.isNamedExports(exportClause)) return [];
        return exportClause.elements.map(({ name }) => `${path.slice('src/internal/'.length, -3)} ${name.text}`);
      }),
    );
    expect(exported.filter((name) => !used.has(name))).toEqual([]);
  });
});

describe('documents', () => {
  it('the architecture has at most 2,500 words, and a decision at most 200', () => {
    expect(wordsIn('ARCHITECTURE.md')).toBeLessThanOrEqual(2500);
    const decisions = ts.sys.readDirectory('docs/decisions', ['.md']).filter((path) => !path.endsWith('README.md'));
    expect(decisions.length).toBeGreaterThan(10);
    for (const path of decisions) expect(wordsIn(path), path).toBeLessThanOrEqual(200);
  });
});
