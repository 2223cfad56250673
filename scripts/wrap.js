// @ts-check
/**
 * Fills the paragraphs of Markdown files to at most 120 columns. Tables, headings, code and comments stay as they are.
 *
 *   node scripts/wrap.js [--check] [FILE ...]
 *
 * Without files it takes all documents of the repository.
 */

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parse } from '@textlint/markdown-to-ast';

const COLUMNS = 120;
/** Code, links without text of their own, and HTML stay on one line. */
const WORDS = /(?:``[^`]+``|`[^`]+`|<[^<>]*>|\]\([^()]*\)|[^\s`<\]]|[`<\]])+/gu;
/** Would begin a block of another kind at the start of a line. */
const BEGINS_BLOCK = /^(?:[-+*]$|[>|]|#{1,6}$|\d+[.)]$|[-=]+$|~{3}|`{3})/;

/** @typedef {{ type: string, range: readonly [number, number], loc: { start: { column: number } }, children?: Node[] }} Node */

/** @param {string} text Markdown */
export function wrap(text) {
  let result = '';
  let end = 0;
  for (const { range, loc } of paragraphs(/** @type {any} */ (parse(text)))) {
    const source = text.slice(...range);
    // A hard line break.
    if (/(?: {2}|\\)\n/.test(source)) continue;
    const before = text.slice(range[0] - loc.start.column, range[0]);
    // A continuation line has the quotation marks of the first, and spaces instead of the markers of lists.
    const indent = before.replaceAll(/[^>]/g, ' ');
    const quoted = indent.includes('>') ? source.replaceAll(/\n[ >]*/g, '\n') : source;
    result += text.slice(end, range[0]) + fill(quoted, indent);
    end = range[1];
  }
  return result + text.slice(end);
}

/** Paragraphs outside of tables, in order. @param {Node} node @returns {Node[]} */
function paragraphs(node) {
  if (node.type === 'Paragraph') return [node];
  return node.type === 'Table' ? [] : (node.children ?? []).flatMap(paragraphs);
}

/** @param {string} paragraph @param {string} indent */
function fill(paragraph, indent) {
  /** @type {string[]} */
  const lines = [];
  let line = '';
  for (const [word] of paragraph.matchAll(WORDS)) {
    const text = word.replaceAll(/\s+/g, ' ');
    const fits = indent.length + line.length + 1 + text.length <= COLUMNS;
    if (line === '') line = text;
    else if (fits || BEGINS_BLOCK.test(text)) line += ` ${text}`;
    else {
      lines.push(line);
      line = text;
    }
  }
  return [...lines, line].join(`\n${indent}`);
}

function documents() {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], {
    encoding: 'utf8',
    cwd: fileURLToPath(new URL('..', import.meta.url)),
  });
  return listed.split('\n').filter((name) => name !== '');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const args = process.argv.slice(2);
  const checks = args.includes('--check');
  const named = args.filter((arg) => arg !== '--check');
  for (const file of named.length > 0 ? named : documents()) {
    const text = readFileSync(file, 'utf8');
    const wanted = wrap(text);
    if (text === wanted) continue;
    if (checks) {
      console.error(`${file}: lines are not filled to ${COLUMNS} columns: npm run wrap`);
      process.exitCode = 1;
    } else writeFileSync(file, wanted);
  }
}
