/** Blocks of documents that `npm run test:guides` runs: their marks are known, and the script reads and compares them rightly. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { difference, executedBlocks, MARKS, withOutputs } from '../../scripts/executed-blocks.js';

const documents = ['docs', 'packages']
  .flatMap((folder) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)))
  .concat('README.md', 'CONTRIBUTING.md', 'ARCHITECTURE.md')
  .filter((path) => path.endsWith('.md') && !path.includes('node_modules') && !path.startsWith(join('docs', 'api')));

describe('executed blocks of documents', () => {
  it('have marks that the script knows', () => {
    const unknown = documents.flatMap((document) =>
      executedBlocks(readFileSync(document, 'utf8'))
        .filter(({ marks }) => marks.some((mark) => !(MARKS as readonly string[]).includes(mark)))
        .map(({ line, marks }) => `${document}:${line}: ${marks.join(', ')}`),
    );
    expect(unknown).toEqual([]);
  });

  it('are all blocks that show a command: one that does not run says why', () => {
    expect(documents.flatMap((document) => silentBlocks(readFileSync(document, 'utf8'), document))).toEqual([]);
  });

  it('a block with a command and without a mark is found (negative control)', () => {
    const text =
      'Text.\n\n```\nnpx rocev2 info\n```\n\n<!-- run: not run: a server -->\n\n```sh\nnpm start\n```\n\n```\nno command\n```\n';
    expect(silentBlocks(text, 'a.md')).toEqual(['a.md:4: npx rocev2 info', 'a.md:10: npm start']);
  });
});

/** Blocks that show a command of a shell, and that neither run nor have a mark. */
function silentBlocks(text: string, document: string): string[] {
  const executed = new Set(executedBlocks(text).map(({ line }) => line));
  return [...text.matchAll(/^```(?:\w*)\n([\s\S]*?)^```$/gm)].flatMap(({ index, 1: code = '' }) => {
    const line = text.slice(0, index).split('\n').length + 1;
    const command = code.split('\n').find((shown) => /^\s*(\$ )?(sudo )?(npx|npm|rocev2|node|git) /.test(shown));
    return command === undefined || executed.has(line) ? [] : [`${document}:${line}: ${command}`];
  });
}

describe('a document', () => {
  const TEXT = [
    'Text.',
    '<!-- run: server, numbers vary -->',
    '```console',
    '$ one',
    'out 1',
    '$ two',
    '```',
    '',
    '```console',
    '$ three',
    'x',
    '```',
    '',
  ].join('\n');

  it('has blocks with lines, marks and steps', () => {
    expect(executedBlocks(TEXT)).toEqual([
      {
        line: 4,
        marks: ['server', 'numbers vary'],
        steps: [
          { command: 'one', output: 'out 1\n' },
          { command: 'two', output: '' },
        ],
      },
      { line: 10, marks: [], steps: [{ command: 'three', output: 'x\n' }] },
    ]);
  });

  it('has blocks to paste, if a mark says how to run them', () => {
    const text = `${TEXT}<!-- run: server -->\n\n\`\`\`\none \\\n  two\nthree\n\`\`\`\n\n\`\`\`\nnot run\n\`\`\`\n`;
    const blocks = executedBlocks(text);
    expect(blocks.slice(0, 2)).toEqual(executedBlocks(TEXT));
    expect(blocks.slice(2)).toEqual([
      {
        line: 16,
        marks: ['server', 'output varies'],
        steps: [
          { command: 'one    two', output: '' },
          { command: 'three', output: '' },
        ],
      },
    ]);
    expect(withOutputs(text, [undefined, undefined, ['y']])).toBe(text);
  });

  it('gets the outputs, and keeps blocks that were not run', () => {
    expect(withOutputs(TEXT, [undefined, ['y\n']])).toBe(TEXT.replace('\nx\n', '\ny\n'));
    expect(withOutputs(TEXT, [['out 1\n', ''], ['x\n']])).toBe(TEXT);
  });
});

describe('an output', () => {
  it('is compared line by line', () => {
    expect(difference('a\nb\n', 'a\nb\n', [])).toBeUndefined();
    expect(difference('a\nb\n', 'a\nc\n', [])).toMatch(/line 2 .*\n {2}shown: {3}b\n {2}printed: c/);
    expect(difference('a\n', 'a\nb\n', [])).toMatch(/shown: {3}\n/);
  });

  it('may have other numbers, units and columns, but no other words, where numbers vary', () => {
    const marks = ['numbers vary'];
    expect(difference('QPN 0x264aa0  1.2 MiB/s\n------', 'QPN 0x1f   900 KiB/s\n---', marks)).toBeUndefined();
    expect(difference('1 packet lost', '2 packets lost', marks)).toBeDefined();
    expect(difference('rate 5', 'loss 5', marks)).toBeDefined();
  });

  it('may have the duration of a simulation of another machine', () => {
    const line = (seconds: string) =>
      `  run  50.0 ms in ${seconds} s; 912 packet events, 0.7${seconds} million a second`;
    expect(difference(line('1.30'), line('7.29'), [])).toBeUndefined();
    expect(difference(line('1.30'), line('7.29').replace('912', '913'), [])).toBeDefined();
  });

  it('is not compared where it varies', () => {
    expect(difference('a', 'b', ['output varies'])).toBeUndefined();
  });
});
