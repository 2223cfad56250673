/** `npm run wrap` fills paragraphs and changes nothing else. */

import { describe, expect, it } from 'vitest';

const { wrap } = (await import('../../scripts/wrap.js' as string)) as { wrap(text: string): string };

const word = 'word ';

describe('wrap', () => {
  it('joins short lines and splits long ones at 120 columns', () => {
    expect(wrap(`a\nb\n\n${word.repeat(48)}\n`)).toBe(`a b\n\n${`${word.repeat(24).trim()}\n`.repeat(2)}`);
  });

  it('indents the lines of items and quotations', () => {
    const [first, rest] = [word.repeat(23).trim(), 'word word'];
    expect(wrap(`- ${word.repeat(25).trim()}\n`)).toBe(`- ${first}\n  ${rest}\n`);
    expect(wrap(`> ${word.repeat(25).trim()}\n`)).toBe(`> ${first}\n> ${rest}\n`);
    expect(wrap('1. a\n   b\n   - c\n     d\n')).toBe('1. a b\n   - c d\n');
  });

  it.each([
    ['a table', `| a | b |\n|---|---|\n| ${word.repeat(40)} | |\n`],
    ['code', '    a\n    b\n\n```\nc\nd\n```\n'],
    ['a comment', '<!-- run:\nserver -->\n'],
    ['a hard line break', 'a  \nb\n'],
    ['a heading', `# ${word.repeat(40).trim()}\n`],
  ])('keeps %s', (_, text) => {
    expect(wrap(text)).toBe(text);
  });

  it('starts no line with a marker of another block, and keeps code spans whole', () => {
    const long = 'x'.repeat(119);
    expect(wrap(`${long} - a\n`)).toBe(`${long} -\na\n`);
    expect(wrap(`${long} \`a b\` c\n`)).toBe(`${long}\n\`a b\` c\n`);
  });
});
