/** The docstrings of the public API: of exported names and of their members, as prose. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import ts from 'typescript';
import { parseSource } from './source-files.js';

export interface Docstring {
  readonly path: string;
  /** Line of its first character, from 1. */
  readonly line: number;
  /** Without asterisks and tags; `{@link name}` is code. */
  readonly text: string;
}

/** Entry points that only the packages of this repository use. */
const INTERNAL = /^\.\/(?:internal\b|commands\/|engine-thread$)/;

interface Manifest {
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
}

/** The modules that programs import, in all packages. */
export function entryPoints(): string[] {
  return ['', ...readdirSync('packages').map((name) => `packages/${name}/`)].flatMap((folder) => {
    const { exports } = JSON.parse(readFileSync(`${folder}package.json`, 'utf8')) as Manifest;
    return Object.entries(exports)
      .filter(([name]) => !INTERNAL.test(name))
      .map(([, target]) => (typeof target === 'string' ? target : target['@rocev2/source']))
      .filter((path) => path?.endsWith('.ts'))
      .map((path) => posix.join(folder, path));
  });
}

/** The docstrings of all names that the entry points export, each once, of files with a comment that is `wanted`. */
export function publicDocstrings(wanted: (prose: string) => boolean = () => true): Docstring[] {
  const files = new Map<string, ts.SourceFile>();
  const parsed = (path: string) => {
    const file = files.get(path) ?? parseSource(path, textToParse(path, wanted));
    files.set(path, file);
    return file;
  };
  const found = new Map<ts.Node, Docstring[]>();
  for (const entry of entryPoints()) collectExports(entry, undefined, parsed, found);
  return [...found.values()].flat();
}

/** Parsing is slow: a file of which nothing is wanted counts as empty, unless it passes names on. */
function textToParse(path: string, wanted: (prose: string) => boolean): string {
  const text = readFileSync(path, 'utf8');
  const isNeeded = /^export (?:type )?[*{]/m.test(text) || commentsOf(text).some((comment) => wanted(proseOf(comment)));
  return isNeeded ? text : '';
}

/** The docstrings of a source, with asterisks. */
function commentsOf(text: string): string[] {
  return text.match(/\/\*\*[\s\S]*?\*\//g) ?? [];
}

/** Collects what `path` exports; `names`: only these, `undefined`: all. */
function collectExports(
  path: string,
  names: ReadonlySet<string> | undefined,
  parsed: (path: string) => ts.SourceFile,
  found: Map<ts.Node, Docstring[]>,
): void {
  const file = parsed(path);
  for (const statement of file.statements) {
    if (ts.isExportDeclaration(statement)) {
      const from = modulePath(path, statement.moduleSpecifier);
      if (from !== undefined) collectExports(from, reexported(statement, names), parsed, found);
    } else if (isExported(statement) && !found.has(statement)) {
      if (names === undefined || declaredBy(statement).some((name) => names.has(name))) {
        found.set(statement, docstringsOf(statement, file));
      }
    }
  }
}

/** The names that a module passes on from another, by their names there. */
function reexported(
  { exportClause }: ts.ExportDeclaration,
  names: ReadonlySet<string> | undefined,
): ReadonlySet<string> | undefined {
  if (exportClause === undefined || !ts.isNamedExports(exportClause)) return names;
  const wanted = exportClause.elements.filter(({ name }) => names === undefined || names.has(name.text));
  return new Set(wanted.map(({ name, propertyName }) => (propertyName ?? name).text));
}

function modulePath(from: string, specifier: ts.Expression | undefined): string | undefined {
  if (specifier === undefined || !ts.isStringLiteral(specifier) || !specifier.text.startsWith('.')) return undefined;
  const path = posix.join(posix.dirname(from), specifier.text.replace(/\.js$/, '.ts'));
  return existsSync(path) ? path : undefined;
}

function isExported(node: ts.Statement): boolean {
  return ts.canHaveModifiers(node) && hasModifier(node, ts.SyntaxKind.ExportKeyword);
}

function hasModifier(node: ts.HasModifiers, kind: ts.SyntaxKind): boolean {
  return ts.getModifiers(node)?.some((modifier) => modifier.kind === kind) ?? false;
}

function declaredBy(statement: ts.Statement): string[] {
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.map(({ name }) => name.getText());
  }
  const { name } = statement as ts.Statement & { readonly name?: ts.Identifier };
  return name === undefined ? [] : [name.text];
}

function docstringsOf(statement: ts.Statement, file: ts.SourceFile): Docstring[] {
  const docstrings: Docstring[] = [];
  const visit = (node: ts.Node): void => {
    const comments = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc);
    const text = comments.map((comment) => comment.getText()).join('\n');
    if (/@internal\b/.test(text) || isHidden(node)) return;
    for (const comment of comments) {
      if (comment.parent !== node) continue;
      const line = file.getLineAndCharacterOfPosition(comment.getStart()).line + 1;
      docstrings.push({ path: file.fileName, line, text: proseOf(comment.getText()) });
    }
    if (!ts.isFunctionLike(node) && !ts.isBlock(node)) ts.forEachChild(node, visit);
  };
  visit(statement);
  return docstrings;
}

/** A private member. */
function isHidden(node: ts.Node): boolean {
  if (ts.isClassElement(node) && node.name !== undefined && ts.isPrivateIdentifier(node.name)) return true;
  return ts.canHaveModifiers(node) && hasModifier(node, ts.SyntaxKind.PrivateKeyword);
}

/** A docstring as Markdown. */
export function proseOf(comment: string): string {
  return comment
    .replace(/^\/\*\*/, '')
    .replace(/\*\/$/, '')
    .split('\n')
    .map((line) => line.replace(/^\s*\* ?/, '').trimEnd())
    .join('\n')
    .replaceAll(/\{@link (\S+?)\}/g, '`$1`')
    .replaceAll(/^@(?:param|returns|throws|typeParam)\b/gm, '-')
    .replaceAll(/^@\w+.*$/gm, '')
    .trim();
}
