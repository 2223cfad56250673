/** The calls that programs can make of an entry point: functions, constructors and methods that take arguments. */

import { dirname, join } from 'node:path';
import ts from 'typescript';
import { parse } from './product-files.js';

const parsed = new Map<string, ts.SourceFile>();

function sourceFile(path: string): ts.SourceFile {
  if (!parsed.has(path)) parsed.set(path, parse(path));
  return parsed.get(path)!;
}

/** Where the source of a module is that `from` names; undefined: outside of the repository. */
function moduleOf(from: string, importer: string): string | undefined {
  if (from.startsWith('.')) return join(dirname(importer), from.replace(/\.js$/, '.ts'));
  return from.startsWith('rocev2/internal/') ? `src/${from.slice('rocev2/'.length)}.ts` : undefined;
}

function isInternal(node: ts.Node): boolean {
  return ts.getJSDocCommentsAndTags(node).some((comment) => comment.getText().includes('@internal'));
}

function isHidden(member: ts.ClassElement): boolean {
  const hiding = [ts.SyntaxKind.PrivateKeyword, ts.SyntaxKind.ProtectedKeyword];
  return (
    isInternal(member) ||
    (ts.canHaveModifiers(member) && ts.getModifiers(member)?.some(({ kind }) => hiding.includes(kind)) === true)
  );
}

function callsOfClass(node: ts.ClassDeclaration, name: string): string[] {
  return node.members.flatMap((member) => {
    if (isHidden(member)) return [];
    if (ts.isConstructorDeclaration(member)) return member.parameters.length > 0 ? [name] : [];
    if (!ts.isMethodDeclaration(member) || !ts.isIdentifier(member.name)) return [];
    return member.parameters.length > 0 ? [`${name}.${member.name.text}`] : [];
  });
}

/** Follows re-exports. A name that is a constant has no calls. */
function callsOf(path: string, name: string): string[] {
  for (const node of sourceFile(path).statements) {
    if (ts.isFunctionDeclaration(node) && node.name?.text === name) return node.parameters.length > 0 ? [name] : [];
    if (ts.isClassDeclaration(node) && node.name?.text === name) return callsOfClass(node, name);
    if (!ts.isExportDeclaration(node) || node.exportClause === undefined || !ts.isNamedExports(node.exportClause))
      continue;
    const found = node.exportClause.elements.find((element) => element.name.text === name);
    const source = found && moduleOf((node.moduleSpecifier as ts.StringLiteral).text, path);
    if (source !== undefined) return callsOf(source, (found!.propertyName ?? found!.name).text);
  }
  return [];
}

/** The calls of an entry point, by the path of its source. */
export function exportedCalls(path: string): string[] {
  const names = sourceFile(path).statements.flatMap((node) => {
    if (ts.isExportDeclaration(node) && !node.isTypeOnly && node.exportClause && ts.isNamedExports(node.exportClause)) {
      return node.exportClause.elements.filter(({ isTypeOnly }) => !isTypeOnly).map((element) => element.name.text);
    }
    return ts.isFunctionDeclaration(node) || ts.isClassDeclaration(node) ? [node.name!.text] : [];
  });
  return names.flatMap((name) => callsOf(path, name));
}
