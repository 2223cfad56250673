/** Every promise of docs/reliability.md has tests that exist, by their file and their title, and every test of test/reliability proves a promise. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const PAGE = 'docs/reliability.md';
/** The tests of each row of the page, by its first column. */
const PROOFS = 'test/reliability/promises.json';
const TEST_FUNCTIONS = new Set(['it', 'test', 'describe']);

interface Proof {
  /** The title as in the source. */
  readonly title: string;
  /** The file of the test, relative to the repository. */
  readonly file: string;
}

/** Rows `| fault | promise |` of all tables of that form. */
function rowsOf(page: string): Array<{ readonly fault: string; readonly promise: string }> {
  const cells = [...page.matchAll(/^\| (.*) \|$/gm)].map(([, row]) => row.split(' | ').map((cell) => cell.trim()));
  return cells.filter((row) => row.length === 2 && row[0] !== 'fault').map(([fault, promise]) => ({ fault, promise }));
}

/** First arguments of `it`, `test` and `describe`, also behind `.each(...)`, `.runIf(...)` and their like. */
function titlesIn(text: string): Set<string> {
  const titles = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && isTestFunction(node.expression)) {
      const [title] = node.arguments;
      if (title !== undefined && ts.isStringLiteralLike(title)) titles.add(title.text);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile('x.ts', text, ts.ScriptTarget.Latest, true));
  return titles;
}

function isTestFunction(node: ts.Expression): boolean {
  if (ts.isIdentifier(node)) return TEST_FUNCTIONS.has(node.text);
  if (ts.isPropertyAccessExpression(node) || ts.isCallExpression(node)) return isTestFunction(node.expression);
  return false;
}

const rows = rowsOf(readFileSync(PAGE, 'utf8'));
const proofs = new Map(Object.entries(JSON.parse(readFileSync(PROOFS, 'utf8')) as Record<string, readonly Proof[]>));

describe(PAGE, () => {
  it('has a table whose rows have proofs', () => {
    expect(rows.length).toBeGreaterThan(20);
    expect(rows.map(({ fault }) => fault)).toEqual([...proofs.keys()]);
  });

  it.each(rows)('$fault: has a promise, and names tests that exist', ({ fault, promise }) => {
    expect(promise).toMatch(/.{20,}/);
    const named = proofs.get(fault) ?? [];
    expect(named.length).toBeGreaterThan(0);
    for (const { title, file } of named) {
      expect(existsSync(file), file).toBe(true);
      expect([...titlesIn(readFileSync(file, 'utf8'))], file).toContain(title);
    }
  });

  it('leaves out no test of test/reliability', () => {
    const files = readdirSync('test/reliability').filter((name) => /\.(test|long)\.ts$/.test(name));
    const named = new Set([...proofs.values()].flat().map(({ file }) => file));
    expect(files.map((name) => join('test/reliability', name)).filter((file) => !named.has(file))).toEqual([]);
  });
});

describe('the check itself', () => {
  it('reads rows and titles', () => {
    expect(rowsOf('| fault | promise |\n|---|---|\n| a | b |')).toEqual([{ fault: 'a', promise: 'b' }]);
    expect([
      ...titlesIn("it('a', f); describe.runIf(x).each([1])('b %s', f); test.each`t`('c', f); other('d');"),
    ]).toEqual(['a', 'b %s']);
  });
});
