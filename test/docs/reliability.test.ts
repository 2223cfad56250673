/** Every promise of docs/reliability.md names tests that exist, by their file and their title, and every test of test/reliability proves a promise. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const PAGE = 'docs/reliability.md';
const TEST_FUNCTIONS = new Set(['it', 'test', 'describe']);

interface Row {
  readonly fault: string;
  readonly promise: string;
  readonly seen: string;
  /** Titles as in the source, and the files they stand in, relative to the repository. */
  readonly proofs: ReadonlyArray<{ readonly title: string; readonly file: string }>;
}

/** Rows `| fault | promise | seen | [title](file), ... |` of all tables of that form. */
function rowsOf(page: string): Row[] {
  const cells = [...page.matchAll(/^\| (.*) \|$/gm)].map(([, row]) => row.split(' | ').map((cell) => cell.trim()));
  return cells
    .filter((row) => row.length === 4 && row[0] !== 'fault')
    .map(([fault, promise, seen, proofs]) => ({
      fault,
      promise,
      seen,
      proofs: [...proofs.matchAll(/\[([^\]]+)\]\(\.\.\/([^)]+)\)/g)].map(([, title, file]) => ({ title, file })),
    }));
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

describe(PAGE, () => {
  it('has a table', () => {
    expect(rows.length).toBeGreaterThan(20);
  });

  it.each(rows)('$fault: says what is promised and seen, and names tests that exist', ({ promise, seen, proofs }) => {
    expect(promise).toMatch(/.{20,}/);
    expect(seen).not.toBe('');
    expect(proofs.length).toBeGreaterThan(0);
    for (const { title, file } of proofs) {
      expect(existsSync(file), file).toBe(true);
      expect([...titlesIn(readFileSync(file, 'utf8'))], file).toContain(title);
    }
  });

  it('leaves out no test of test/reliability', () => {
    const files = readdirSync('test/reliability').filter((name) => /\.(test|long)\.ts$/.test(name));
    const named = new Set(rows.flatMap(({ proofs }) => proofs.map(({ file }) => file)));
    expect(files.map((name) => join('test/reliability', name)).filter((file) => !named.has(file))).toEqual([]);
  });
});

describe('the check itself', () => {
  it('reads rows and titles', () => {
    expect(
      rowsOf('| fault | promise | seen | proof |\n|---|---|---|---|\n| a | b | c | [d e](../f.ts), [g](../h.ts) |'),
    ).toEqual([
      {
        fault: 'a',
        promise: 'b',
        seen: 'c',
        proofs: [
          { title: 'd e', file: 'f.ts' },
          { title: 'g', file: 'h.ts' },
        ],
      },
    ]);
    expect([
      ...titlesIn("it('a', f); describe.runIf(x).each([1])('b %s', f); test.each`t`('c', f); other('d');"),
    ]).toEqual(['a', 'b %s']);
  });
});
