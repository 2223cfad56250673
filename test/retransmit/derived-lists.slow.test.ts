/**
 * Names of schemes stand in the registries, and nowhere else as a list: no array, union or table of the sources has two of them. Who adds a
 * scheme then has no list to find.
 */

import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { rateControlNames } from '../../src/dcqcn/rate-controls.js';
import { recoveryNames } from '../../src/retransmit/recovery-schemes.js';
import { parseSource, placeOf, sourceFiles } from '../docs/source-files.js';

/** Files whose lists are no lists of schemes, and why. */
const OTHERS: Readonly<Record<string, string>> = {
  'src/dcqcn/rate-controls.ts': 'the registry itself',
  'src/retransmit/recovery-schemes.ts': 'the registry of the other kind',
  'packages/lab/src/commands/demo-command.ts': 'one of each kind, whatever others there are',
  'packages/lab/src/sim/scenarios/livelock.ts': 'published experiments: these schemes, whatever others there are',
  'packages/lab/src/sim/scenarios/recovery.ts': 'published experiments',
  'packages/lab/src/sim/scenarios/completion-times.ts': 'published experiments',
  'packages/lab/src/sim/scenarios/timely.ts': 'published experiments',
  'packages/lab/src/sim/scenario/like.ts': 'the rate controls that the original simulators have',
  'packages/page/src/scenes/livelock.ts': 'what a scene compares, whatever others there are',
  'packages/page/src/scenes/recovery.ts': 'the same',
  'packages/page/src/scenes/dcqcn.ts': 'the same',
  'packages/page/src/scenes/incast.ts': 'the same',
  'packages/page/src/scenes/signals.ts': 'the same',
  'packages/page/src/scenes/own.ts': 'the same',
  'packages/lab/src/fluid/study.ts': 'models of the fluid studies, which happen to have the names of what they model',
  'packages/lab/src/commands/fluid-command.ts': 'the same models',
  'packages/lab/src/commands/fluid-report.ts': 'the same models',
};

const KINDS = [new Set<string>(recoveryNames()), new Set<string>(rateControlNames())];

/** What one array, union, table or switch has directly: text literals, and keys. */
function wordsOf(node: ts.Node): string[] {
  if (ts.isArrayLiteralExpression(node)) return node.elements.flatMap(literal);
  if (ts.isUnionTypeNode(node)) {
    return node.types.flatMap((type) => (ts.isLiteralTypeNode(type) ? literal(type.literal) : []));
  }
  if (ts.isObjectLiteralExpression(node)) return node.properties.flatMap(({ name }) => literal(name));
  if (ts.isInterfaceDeclaration(node) || ts.isTypeLiteralNode(node)) {
    return node.members.flatMap(({ name }) => literal(name));
  }
  if (ts.isCaseBlock(node)) return node.clauses.flatMap((c) => (ts.isCaseClause(c) ? literal(c.expression) : []));
  if (ts.isNewExpression(node) || ts.isCallExpression(node)) return (node.arguments ?? []).flatMap(literal);
  return [];
}

function literal(node: ts.Node | undefined): string[] {
  if (node === undefined) return [];
  if (ts.isStringLiteralLike(node) || ts.isIdentifier(node)) return [node.text];
  if (ts.isArrayLiteralExpression(node)) return node.elements.slice(0, 1).flatMap(literal); // a row of a table
  // `livelock('go-back-n')` as an element of a list.
  if (ts.isCallExpression(node)) return node.arguments.flatMap(literal);
  if (ts.isObjectLiteralExpression(node)) {
    return node.properties.flatMap((property) =>
      ts.isPropertyAssignment(property) && property.name.getText() === 'name' ? literal(property.initializer) : [],
    );
  }
  return [];
}

/** Lists with two names of one kind or more: `cli/x.ts:7 go-back-n, go-back-0`. `none` and `fixed` count only beside a name that is no plain word. */
function listsIn(file: ts.SourceFile): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    for (const names of KINDS) {
      const here = [...new Set(wordsOf(node).filter((word) => names.has(word)))];
      if (here.length >= 2) found.push(`${placeOf(node)} ${here.join(', ')}`);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

const lists = new Map(sourceFiles().map((file) => [file.fileName, listsIn(file)]));

describe('lists of scheme names', () => {
  it('stand in the registries only', () => {
    const strangers = [...lists].filter(([name]) => !(name in OTHERS)).flatMap(([, found]) => found);
    expect(strangers).toEqual([]);
  });

  it.each(Object.keys(OTHERS))('%s still needs its exception', (name) => {
    expect(lists.get(name)).not.toEqual([]);
    expect(lists.has(name)).toBe(true);
  });
});

describe('the check itself', () => {
  it.each([
    "const names = ['go-back-n', 'selective-repeat'];",
    "type Name = 'none' | 'dcqcn';",
    "const titles = { dcqcn: 'DCQCN', timely: 'TIMELY' };",
    "const pairs = [['go-back-0', 1], ['go-back-n', 2]];",
    "const runs = [run('go-back-0'), run('go-back-n')];",
    "const options = [{ name: 'dcqcn' }, { name: 'timely' }];",
    "z.enum(['none', 'fixed']);",
    "new Set(['timely', 'patched-timely']);",
    "interface Tables { 'go-back-n': number; 'go-back-0': number }",
    "switch (x) { case 'dcqcn': f(); break; case 'timely': g(); }",
  ])('finds %s', (text) => {
    expect(listsIn(parseSource('x.ts', text))).not.toEqual([]);
  });

  it.each(["const name = 'go-back-n';", "const words = ['none', 'all'];", "f('none', 1);"])('lets %s pass', (text) => {
    expect(listsIn(parseSource('x.ts', text))).toEqual([]);
  });
});
