/** Texts of the sources that a user reads: messages, help and tables, without comments. */

import ts from 'typescript';

export interface SourceText {
  /** Line of its first character, from 1. */
  readonly line: number;
  /** With `X` for each value in a template. */
  readonly text: string;
}

const WORDS_MIN = 3;

/** Strings of at least three words. */
export function textsOf(file: ts.SourceFile): SourceText[] {
  const texts: SourceText[] = [];
  const visit = (node: ts.Node): void => {
    const text = textOf(node);
    if (text !== undefined && text.split(/\s+/).length >= WORDS_MIN) {
      texts.push({ line: file.getLineAndCharacterOfPosition(node.getStart()).line + 1, text });
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return texts;
}

function textOf(node: ts.Node): string | undefined {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (!ts.isTemplateExpression(node)) return undefined;
  return node.head.text + node.templateSpans.map(({ literal }) => `X${literal.text}`).join('');
}
