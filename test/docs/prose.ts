/** The sentences of a Markdown document: its text without code, comments and targets of links. */

/** A paragraph, an item of a list, a heading, or a cell of a table. */
export interface TextBlock {
  readonly kind: 'paragraph' | 'item' | 'heading' | 'cell';
  /** Number of its first line, from 1. */
  readonly line: number;
  readonly text: string;
}

/** The same lines, with code as `X`, and without comments, targets of links and HTML tags. */
export function withoutCode(markdown: string): string {
  const emptied = (text: string) => text.replaceAll(/[^\n]/g, '');
  return markdown
    .replace(/^---\n[\s\S]*?\n---\n/, emptied)
    .replaceAll(/^( *)```.*\n[\s\S]*?^\1```$/gm, emptied)
    .replaceAll(/(?:^|\n\n)(?: {4}.*(?:\n|$)|\n(?= {4}))+/g, emptied)
    .replaceAll(/<!--[\s\S]*?-->/g, emptied)
    .replaceAll(/``[\s\S]+?``|`[^`]+`/g, (code) => `X${emptied(code)}`)
    .replaceAll(/\]\([^)\s]*\)/g, ']')
    .replaceAll(/https?:\/\/\S+/g, 'X')
    .replaceAll(/<\/?[a-z][^>\n]*>/g, '');
}

/** Paragraphs, items, headings and cells, in the order of the document. Takes what `withoutCode` returns. */
export function textBlocks(prose: string): TextBlock[] {
  const blocks: TextBlock[] = [];
  let open: { kind: TextBlock['kind']; line: number; lines: string[] } | undefined;
  const close = () => {
    if (open !== undefined) blocks.push({ kind: open.kind, line: open.line, text: open.lines.join(' ') });
    open = undefined;
  };
  for (const [i, raw] of prose.split('\n').entries()) {
    const line = i + 1;
    const text = raw.trim();
    const heading = /^#+ +(.*)$/.exec(text);
    const item = /^(?:[-*+]|\d+\.) +(.*)$/.exec(text);
    if (text === '' || /^(?:-{3,}|={3,})$/.test(text)) close();
    else if (heading !== null) {
      close();
      blocks.push({ kind: 'heading', line, text: heading[1] });
    } else if (text.startsWith('|')) {
      close();
      const cells = text.split('|').map((cell) => cell.trim());
      blocks.push(
        ...cells.filter((cell) => /\w/.test(cell)).map((cell) => ({ kind: 'cell' as const, line, text: cell })),
      );
    } else if (item !== null) {
      close();
      open = { kind: 'item', line, lines: [item[1]] };
    } else if (open !== undefined) open.lines.push(text);
    else open = { kind: 'paragraph', line, lines: [text] };
  }
  close();
  return blocks;
}

export function wordsOf(text: string): string[] {
  return text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
}

export function sentencesOf(text: string): string[] {
  return text
    .replaceAll(/\b(e\.g|i\.e|etc|vs|cf|al|Fig|No)\./g, '$1')
    .split(/(?<=[.!?]["')\]*]*) +(?=["'(*[]*[\p{Lu}\p{N}])/u)
    .filter((sentence) => sentence !== '');
}
