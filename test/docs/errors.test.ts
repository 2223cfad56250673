/** The codes that are thrown, those of `core/errors.ts` and those of docs/errors.md are the same, and so are their exit codes. */

import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { exitCodeOf } from '../../packages/command/src/exit.js';
import { ERROR_CODES, RoceError } from '../../src/core/errors.js';
import { parseSource, placeOf, sourceFiles } from './source-files.js';

/** Codes of the RoceErrors that are made in the file, with a place of each: the first argument, whatever it is chosen by. */
function codesMadeIn(file: ts.SourceFile): Map<string, string> {
  const codes = new Map<string, string>();
  const collect = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node)) codes.set(node.text, placeOf(node));
    else if (ts.isConditionalExpression(node)) [node.whenTrue, node.whenFalse].forEach(collect);
    else if (ts.isIdentifier(node)) collectVariable(node);
    else if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node)) collect(node.expression);
  };
  /** A constant of the same file that the code was put into first. */
  const collectVariable = ({ text }: ts.Identifier): void => {
    const look = (node: ts.Node): void => {
      if (ts.isVariableDeclaration(node) && node.name.getText() === text && node.initializer !== undefined)
        collect(node.initializer);
      ts.forEachChild(node, look);
    };
    look(file);
  };
  const visit = (node: ts.Node): void => {
    const made =
      (ts.isNewExpression(node) && /^(RoceError|WaitEnded)$/.test(node.expression.getText())) ||
      (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.SuperKeyword && extendsRoceError(node));
    if (made && node.arguments?.[0] !== undefined) collect(node.arguments[0]);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return codes;
}

function extendsRoceError(node: ts.Node): boolean {
  let at: ts.Node = node;
  while (!ts.isClassLike(at)) at = at.parent;
  return at.heritageClauses?.some((clause) => clause.getText() === 'extends RoceError') ?? false;
}

interface Entry {
  readonly code: string;
  readonly cause: string;
  readonly cure: string;
  readonly exitCode: number;
}

/** Rows `| code | cause | cure | exit |` of the page's table. */
function entriesOf(page: string): Entry[] {
  return [...page.matchAll(/^\| `([A-Z_]+)` \| (.*) \| (.*) \| (\d+) \|$/gm)].map(([, code, cause, cure, exit]) => ({
    code,
    cause: cause.trim(),
    cure: cure.trim(),
    exitCode: Number(exit),
  }));
}

const thrown = new Map(sourceFiles().flatMap((file) => [...codesMadeIn(file)]));
const entries = entriesOf(readFileSync('docs/errors.md', 'utf8'));

describe('error codes', () => {
  it('that are thrown are in the catalogue', () => {
    const unknown = [...thrown].filter(([code]) => !(ERROR_CODES as readonly string[]).includes(code));
    expect(unknown).toEqual([]);
  });

  it('of the catalogue are all thrown', () => {
    expect(ERROR_CODES.filter((code) => !thrown.has(code))).toEqual([]);
  });

  it('are explained in docs/errors.md, in the order of the catalogue', () => {
    expect(entries.map(({ code }) => code)).toEqual([...ERROR_CODES]);
  });

  it.each(entries)('$code has a cause, a cure and the exit code it leads to', ({ code, cause, cure, exitCode }) => {
    expect(cause).toMatch(/^[A-Z`].{20,}\.$/);
    expect(cure).toMatch(/^[A-Z`].{10,}\.$/);
    expect(exitCodeOf(new RoceError(code as (typeof ERROR_CODES)[number], 'text'))).toBe(exitCode);
  });

  it('are not explained twice in the same words', () => {
    expect(new Set(entries.map(({ cause }) => cause)).size).toBe(entries.length);
    expect(new Set(entries.map(({ cure }) => cure)).size).toBe(entries.length);
  });

  it('are named rightly wherever a source, a comment or a document names one', () => {
    const texts = [...sourceFiles().map((file) => file.text), readFileSync('README.md', 'utf8')];
    const named = texts.flatMap((text) => text.match(/\bERR_ROCE_[A-Z]\w*/g) ?? []);
    expect(named.length).toBeGreaterThan(300);
    expect([...new Set(named)].filter((code) => !(ERROR_CODES as readonly string[]).includes(code))).toEqual([]);
  });
});

describe('the check itself', () => {
  const codesOf = (text: string) => [...codesMadeIn(parseSource('x.ts', text)).keys()];

  it('sees codes that are written, chosen, cast, kept in a constant and passed to the constructor above', () => {
    expect(codesOf("throw new RoceError('A', 'text');")).toEqual(['A']);
    expect(codesOf("throw new RoceError(is ? 'A' : ('B' as Code), 'text');")).toEqual(['A', 'B']);
    expect(codesOf("const code = is ? 'A' : 'B'; throw new RoceError(code, 'C');")).toEqual(['A', 'B']);
    expect(codesOf("class Refused extends RoceError { constructor() { super('A', 'text'); } }")).toEqual(['A']);
  });

  it('sees none in comments, texts and comparisons', () => {
    expect(codesOf("// new RoceError('A')\nthrow new Error('B'); if (error.code === 'C') throw error;")).toEqual([]);
    expect(codesOf("class Other extends Error { constructor() { super('A'); } }")).toEqual([]);
  });

  it('reads rows of the table and nothing else', () => {
    expect(entriesOf('| code | cause | cure | exit |\n| `A_B` | Why. | What. | 2 |\n| `C` | Why. |')).toEqual([
      { code: 'A_B', cause: 'Why.', cure: 'What.', exitCode: 2 },
    ]);
  });
});
