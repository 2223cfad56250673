// Writes the tables of docs/perftest.md from the table of flags, as built: `npm run build && node scripts/perftest-doc.js`.
// With --check it only says whether the page has what it would write.
import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { ACCEPTED_FLAGS, MISSING_FLAGS, TAKEN_FLAGS } from '../build/packages/cli/src/transfer/flags.js';
import { withRegion } from './marked-region.js';

const PAGE = new URL('../docs/perftest.md', import.meta.url);
const TABLES = [
  ['taken', ['flag', 'command', 'meaning'], TAKEN_FLAGS, ({ meaning }) => meaning],
  ['accepted', ['flag', 'command', 'what does its work here'], ACCEPTED_FLAGS, ({ instead }) => instead],
  ['missing', ['flag', 'command', 'why, and what to do'], MISSING_FLAGS, ({ reason }) => reason],
];

/** `-c`, `--transport`, and every other spelling. */
function spellings({ flags, also = [] }) {
  const value = / <.*/.exec(flags)?.[0] ?? '';
  const names = [...flags.replace(/ <.*/, '').split(', '), ...also];
  return names.map((name, i) => `\`${name}${i === 0 ? value : ''}\``).join(', ');
}

function tableOf(titles, entries, textOf) {
  const rows = entries.map((entry) => [spellings(entry), (entry.tools ?? ['bw', 'lat']).join(', '), textOf(entry)]);
  const lines = [titles, titles.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`);
  return lines.join('\n').replaceAll('| --- | --- | --- |', '|---|---|---|');
}

const before = readFileSync(PAGE, 'utf8');
let after = before;
for (const [name, titles, entries, textOf] of TABLES) {
  after = withRegion(after, name, tableOf(titles, entries, textOf));
}
if (!process.argv.includes('--check')) writeFileSync(PAGE, after);
else if (before !== after) {
  console.error('docs/perftest.md is not what the table of flags says: npm run build && node scripts/perftest-doc.js');
  process.exitCode = 1;
}
