/** What the tests of documents need of Markdown: its code, its links, its headings. */

export interface Page {
  /** Code in fences and indented code. */
  readonly blocks: readonly string[];
  /** Code in the text. */
  readonly spans: readonly string[];
  /** Targets of links and pictures. */
  readonly links: readonly string[];
  /** What `#...` may name, as GitHub makes it of the headings. */
  readonly anchors: ReadonlySet<string>;
}

export function parseMarkdown(text: string): Page {
  const blocks: string[] = [];
  const spans: string[] = [];
  // Fences first: what looks like a heading or a link inside is neither.
  const prose = text
    .replaceAll(/^```.*\n([\s\S]*?)^```$/gm, (_, block: string) => keep(blocks, block))
    .replaceAll(/(?:^|\n\n)((?: {4}.*(?:\n|$)|\n(?= {4}))+)/g, (_, block: string) => keep(blocks, block))
    .replaceAll(/`([^`]+)`/g, (_, span: string) => {
      spans.push(span.replaceAll(/\s+/g, ' '));
      return span;
    });
  return {
    blocks,
    spans,
    links: [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target),
    anchors: new Set([...prose.matchAll(/^#+ (.*)$/gm)].map(([, heading]) => slug(heading))),
  };
}

function keep(blocks: string[], block: string): string {
  blocks.push(block);
  return '\n\n';
}

function slug(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}
