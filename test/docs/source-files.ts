/** The sources of all packages, as syntax trees. */

import { readdirSync, readFileSync } from 'node:fs';
import ts from 'typescript';

export function parseSource(fileName: string, text: string): ts.SourceFile {
  return ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest, true);
}

/** All files of `src/` and of `packages/NAME/src/`, with slashes. */
export function sourcePaths(): string[] {
  return ['src', ...readdirSync('packages').map((name) => `packages/${name}/src`)]
    .flatMap((folder) =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(
        (path) => `${folder}/${path.replaceAll('\\', '/')}`,
      ),
    )
    .filter((path) => path.endsWith('.ts'))
    .sort();
}

/** The same, parsed. */
export function sourceFiles(): ts.SourceFile[] {
  return sourcePaths().map((path) => parseSource(path, readFileSync(path, 'utf8')));
}

/** Where `node` stands: `src/core/errors.ts:12`. */
export function placeOf(node: ts.Node): string {
  const file = node.getSourceFile();
  return `${file.fileName}:${file.getLineAndCharacterOfPosition(node.getStart()).line + 1}`;
}
