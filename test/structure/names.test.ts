/** One meaning per name. */

import { describe, expect, it } from 'vitest';
import {
  declaredNames,
  exportedTypes,
  fileName,
  PACKAGES,
  parse,
  readFileSync,
  repeated,
  sourcesOf,
} from './product-files.js';

interface Replaced {
  readonly identifiers: readonly string[];
  /** By identifier: why it stays, and in which files. */
  readonly exceptions: Readonly<Record<string, { readonly files: string; readonly reason: string }>>;
}

const REPLACED = JSON.parse(readFileSync('test/structure/replaced-identifiers.json', 'utf8')) as Replaced;

/** `crowdedOut` is `crowded out`. */
function wordsOf(name: string): string {
  return name
    .replaceAll('_', ' ')
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .toLowerCase();
}

const WANTED = new Map(REPLACED.identifiers.map((identifier) => [wordsOf(identifier), identifier]));

/** The replaced identifier that a name contains, by whole words. */
function replacedIn(name: string, path: string): string | undefined {
  const words = ` ${wordsOf(name)} `;
  for (const [wanted, identifier] of WANTED) {
    if (!words.includes(` ${wanted} `)) continue;
    const exception = REPLACED.exceptions[identifier];
    if (exception === undefined || !new RegExp(exception.files).test(path)) return identifier;
  }
  return undefined;
}

describe('names', () => {
  it.each(PACKAGES)('no two files of the package at /%s share one', (folder) => {
    const names = sourcesOf(folder).filter((path) => !path.endsWith('/index.ts') && !path.startsWith('src/internal/'));
    expect([...repeated(names, fileName).values()]).toEqual([]);
  });

  it('no two exported types of the product share one', () => {
    const types = PACKAGES.flatMap(sourcesOf).flatMap((path) =>
      exportedTypes(parse(path)).map((name) => ({ name, path })),
    );
    const twice = [...repeated(types, ({ name }) => name).values()];
    expect(twice.map((places) => places.map(({ name, path }) => `${name} ${path}`))).toEqual([]);
  });

  it('none is one that the glossary replaces', () => {
    const found = PACKAGES.flatMap(sourcesOf).flatMap((path) =>
      declaredNames(parse(path)).flatMap(({ name, line }) => {
        const replaced = replacedIn(name, path);
        return replaced === undefined ? [] : [`${path}:${line} ${name} (${replaced})`];
      }),
    );
    expect(found).toEqual([]);
  });

  it('are compared by whole words', () => {
    expect(replacedIn('crowdedOut', 'x.ts')).toBe('crowd' in REPLACED.exceptions ? undefined : 'crowdedOut');
    expect(replacedIn('indoors', 'x.ts')).toBeUndefined();
    expect(replacedIn('openDoor', 'x.ts')).toMatch(/door/i);
    expect(declaredNames(parse('x.ts', 'class A { #door = 1; f(guest: B) {} }')).map(({ name }) => name)).toEqual([
      'A',
      'door',
      'f',
      'guest',
    ]);
  });
});
