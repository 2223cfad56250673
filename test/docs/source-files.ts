/** The sources of `src/`, as syntax trees. */

import { readdirSync, readFileSync } from 'node:fs';
import ts from 'typescript';

export function parseSource(fileName: string, text: string): ts.SourceFile {
  return ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest, true);
}

/** All files of `src/`, named from there with slashes. */
export function sourceFiles(): ts.SourceFile[] {
  return readdirSync('src', { recursive: true, encoding: 'utf8' })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => path.endsWith('.ts'))
    .sort()
    .map((path) => parseSource(path, readFileSync(`src/${path}`, 'utf8')));
}

/** Where `node` stands: `core/errors.ts:12`. */
export function placeOf(node: ts.Node): string {
  const file = node.getSourceFile();
  return `${file.fileName}:${file.getLineAndCharacterOfPosition(node.getStart()).line + 1}`;
}
