/** Everything that `src/` exports has a docstring of its own, and so has every public member of what it exports. */

import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { parseSource, placeOf, sourceFiles } from './source-files.js';

const files = sourceFiles();
const folderOf = ({ fileName }: ts.SourceFile) => (fileName.includes('/') ? fileName.split('/')[0] : fileName);
const folders = [...new Set(files.map(folderOf))];

interface Documentable {
  readonly name: string;
  readonly node: ts.Node;
}

/**
 * Exported declarations and their public members. Members of classes and interfaces that extend or implement something are left out: theirs may be
 * described there. So are constructors, whose class is described, and what is private.
 */
function documentablesOf(file: ts.SourceFile): Documentable[] {
  return file.statements.filter(isExported).flatMap((node): Documentable[] => {
    const name = nameOf(node);
    if (!ts.isClassDeclaration(node) && !ts.isInterfaceDeclaration(node)) return [{ name, node }];
    const members: readonly (ts.ClassElement | ts.TypeElement)[] =
      node.heritageClauses === undefined ? node.members : [];
    // A setter shares the docstring of its getter, an overload that of the first.
    const first = new Map<string, ts.Node>();
    for (const member of members) {
      if (isPublicMember(member) && !first.has(member.name!.getText())) first.set(member.name!.getText(), member);
    }
    return [{ name, node }, ...[...first].map(([key, member]) => ({ name: `${name}.${key}`, node: member }))];
  });
}

function modifiersOf(node: ts.Node): ts.SyntaxKind[] {
  return ts.canHaveModifiers(node) ? (ts.getModifiers(node) ?? []).map(({ kind }) => kind) : [];
}

function isExported(node: ts.Node): boolean {
  return !ts.isExportDeclaration(node) && modifiersOf(node).includes(ts.SyntaxKind.ExportKeyword);
}

function nameOf(node: ts.Node): string {
  if (ts.isVariableStatement(node)) return node.declarationList.declarations[0].name.getText();
  return (node as ts.DeclarationStatement).name!.getText();
}

function isPublicMember(member: ts.ClassElement | ts.TypeElement): boolean {
  const { name } = member;
  if (name === undefined || ts.isPrivateIdentifier(name) || ts.isComputedPropertyName(name)) return false;
  return !modifiersOf(member).includes(ts.SyntaxKind.PrivateKeyword);
}

/** The docstring right above the declaration; one behind an empty line belongs to the file or to a group. */
function docstringOf(node: ts.Node): string | undefined {
  const last = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc).at(-1);
  if (last === undefined) return undefined;
  const { text } = node.getSourceFile();
  const between = text.slice(last.end, node.getStart());
  return between.split('\n').length <= 2 ? text.slice(last.pos, last.end) : undefined;
}

/** Whether a docstring says more than the words of the name. */
function saysMoreThan(name: string, docstring: string): boolean {
  const words = (text: string) =>
    text
      .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
      .toLowerCase()
      .match(/[a-z0-9]+/g) ?? [];
  const known = new Set([...words(name), 'the', 'a', 'an', 'of', 'is', 'its', 'this', 'in']);
  return words(docstring).some((word) => !known.has(word));
}

/** What lacks a docstring, or has one that only repeats the name: `core/errors.ts:12 RoceError.code`. */
function undocumented(file: ts.SourceFile): string[] {
  return documentablesOf(file)
    .filter(({ name, node }) => {
      const docstring = docstringOf(node);
      return docstring === undefined || !saysMoreThan(name, docstring);
    })
    .map(({ name, node }) => `${placeOf(node)} ${name}`);
}

describe('docstrings', () => {
  it.each(folders)('src/%s', (folder) => {
    expect(files.filter((file) => folderOf(file) === folder).flatMap(undocumented)).toEqual([]);
  });
});

describe('the check itself', () => {
  const lacking = (text: string) => undocumented(parseSource('x.ts', text)).map((line) => line.split(' ')[1]);

  it.each([
    'export const limit = 1;',
    'export function limit() {}',
    'export type limit = 1;',
    'export interface limit {}',
    'export class limit {}',
    'export enum limit {}',
    'export abstract class limit {}',
    'export async function limit() {}',
  ])('wants one for %s', (declaration) => {
    expect(lacking(declaration)).toEqual(['limit']);
    expect(lacking(`/** Bytes, 1 to 5. */\n${declaration}`)).toEqual([]);
    expect(lacking(declaration.replace('export ', ''))).toEqual([]);
  });

  it('wants one for every public member, and takes that of the getter for the setter', () => {
    const members = 'a = 1; b() {} get c() { return 1; } set c(v) {} #d = 1; private e = 1; constructor() {} [f]() {}';
    expect(lacking(`/** Bytes. */\nexport class X { ${members} }`)).toEqual(['X.a', 'X.b', 'X.c']);
    expect(lacking('/** Bytes. */\nexport interface X { a: 1; b(): void }')).toEqual(['X.a', 'X.b']);
    const documented = '{\n/** Long. */\na: 1;\n/** Short. */\nb(): void\n}';
    expect(lacking(`/** Bytes. */\nexport interface X ${documented}`)).toEqual([]);
  });

  it('does not take the docstring of the file, of a group or of a neighbour', () => {
    expect(lacking('/** About the file. */\n\nexport const a = 1;')).toEqual(['a']);
    expect(lacking('/** Bytes. */\nexport const a = 1;\nexport const b = 2;')).toEqual(['b']);
    expect(lacking('// Bytes.\nexport const a = 1;')).toEqual(['a']);
  });

  it('does not take one that repeats the name', () => {
    expect(lacking('/** The queue depth. */\nexport const queueDepth = 1;')).toEqual(['queueDepth']);
    expect(lacking('/** The queue depth, 1 to 64. */\nexport const queueDepth = 1;')).toEqual([]);
  });

  it('asks nothing of what is exported again from elsewhere', () => {
    expect(lacking("export { a } from './a.js'; export * from './b.js'; export type { C } from './c.js';")).toEqual([]);
  });
});
