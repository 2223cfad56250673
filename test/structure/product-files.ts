/** The product's source files: those of the transport and of each package. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import ts from 'typescript';

/** The packages, by folder; the transport is the root. */
export const PACKAGES: readonly string[] = ['', ...readdirSync('packages').map((name) => `packages/${name}/`)];

/** Paths of a package's TypeScript sources, from the root of the repository. */
export function sourcesOf(folder: string): string[] {
  return readdirSync(`${folder}src`, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `${folder}src/${name.replaceAll('\\', '/')}`)
    .sort();
}

export function parse(path: string, text = readFileSync(path, 'utf8')): ts.SourceFile {
  return ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
}

/** Groups that have more than one member. */
export function repeated<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return new Map([...groups].filter(([, members]) => members.length > 1));
}

export function fileName(path: string): string {
  return basename(path);
}

/** Names of the classes, interfaces, type aliases and enums that a file exports. */
export function exportedTypes(file: ts.SourceFile): string[] {
  return file.statements
    .filter(
      (node) =>
        ts.isClassDeclaration(node) ||
        ts.isInterfaceDeclaration(node) ||
        ts.isTypeAliasDeclaration(node) ||
        ts.isEnumDeclaration(node),
    )
    .filter((node) => ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword))
    .flatMap((node) => (node.name === undefined ? [] : [node.name.text]));
}

/** Names that a file declares: variables, functions, types, members, parameters. */
export function declaredNames(file: ts.SourceFile): { readonly name: string; readonly line: number }[] {
  const found: { name: string; line: number }[] = [];
  const visit = (node: ts.Node) => {
    const { name } = node as ts.NamedDeclaration;
    if (name !== undefined && !ts.isImportSpecifier(node) && !ts.isExportSpecifier(node)) {
      if (ts.isIdentifier(name) || ts.isPrivateIdentifier(name)) {
        const line = file.getLineAndCharacterOfPosition(name.getStart()).line + 1;
        found.push({ name: name.text.replace(/^#/, ''), line });
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

export { existsSync, readFileSync };
