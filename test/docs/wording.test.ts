/**
 * Documents, docstrings of the public API, help texts and messages are written in plain English: few unidiomatic
 * expressions, no overlong sentence, paragraph or line. `wording-ratchet.json` has the counts that each page may have;
 * they may only fall. `npm run wording` lowers them to the present ones.
 */

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { COMMANDS } from '../../packages/cli/src/commands.js';
import { wholeProgram } from '../../packages/cli/src/run.js';
import { silentIo } from '../../packages/cli/test/run-in-process.js';
import { HELP_ALL } from '../../packages/command/src/help-format.js';
import { proseOf, publicDocstrings } from './docstrings.js';
import { textsOf } from './messages.js';
import { withoutCode, wordsOf } from './prose.js';
import { parseSource, sourcePaths } from './source-files.js';
import {
  countByMeasure,
  MEASURES,
  type Measure,
  type Remark,
  remarksOnDocument,
  remarksOnPatterns,
} from './wording.js';

/** Written before the site is built, and not kept. */
const GENERATED = [join('docs', 'api'), join('scripts', 'site', 'results')];
const RATCHET = 'test/docs/wording-ratchet.json';
/** `npm run wording`. */
const LOWERS = process.env['WORDING_LOWER'] === '1';

type Counts = Partial<Record<Measure, number>>;

const pages = [
  ...readdirSync('.'),
  ...['bench', 'docs', 'packages', 'scripts', 'src', 'test'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
  ),
]
  .filter(
    (path) =>
      path.endsWith('.md') && !path.includes('node_modules') && !GENERATED.some((folder) => path.startsWith(folder)),
  )
  .sort();
const allowed = JSON.parse(readFileSync(RATCHET, 'utf8')) as Record<string, Counts>;
const texts = new Map(pages.map((page) => [page, readFileSync(page, 'utf8')]));
const remarks = new Map([...texts].map(([page, text]) => [page, remarksOnDocument(text)]));
remarks.set('help', await remarksOnHelp());
remarks.set('messages', remarksOnMessages());
remarks.set('docstrings', remarksOnDocstrings());

async function remarksOnHelp(): Promise<Remark[]> {
  let text = '';
  const io = silentIo((part) => {
    text += part;
  });
  const helpOf = (command: Command): string => {
    text = '';
    command.outputHelp();
    return text.replaceAll(/\s+/g, ' ');
  };
  const remarksOn = (command: Command): Remark[] => [
    ...remarksOnPatterns(helpOf(command)).map((remark) => ({ ...remark, text: `${command.name()}: ${remark.text}` })),
    ...command.commands.filter((child) => child.name() !== 'help').flatMap(remarksOn),
  ];
  return remarksOn(await wholeProgram(COMMANDS, { ...io, args: [HELP_ALL] }));
}

function remarksOnMessages(): Remark[] {
  return sourcePaths().flatMap((path) => {
    const source = readFileSync(path, 'utf8');
    // Only few files have a match, in comments or texts: parse those.
    if (remarksOnPatterns(source).length === 0) return [];
    return textsOf(parseSource(path, source)).flatMap(({ line, text }) =>
      remarksOnPatterns(text).map((remark) => ({ ...remark, line, text: `${path}: ${remark.text}` })),
    );
  });
}

/** Of the public API. Code in a docstring is indented, and may be long. */
function remarksOnDocstrings(): Remark[] {
  const remarksOn = (text: string) =>
    remarksOnDocument(text).filter(({ measure }) => ['patterns', 'sentences', 'paragraphs'].includes(measure));
  return publicDocstrings((prose) => remarksOn(prose).length > 0).flatMap(({ path, line, text }) =>
    remarksOn(text).map((remark) => ({ ...remark, line, text: `${path}: ${remark.text}` })),
  );
}

/** Complaints about more remarks than allowed, with the remarks, and about counts that can be lowered. */
function complaints(found: readonly Remark[], limits: Counts): string[] {
  const counts = countByMeasure(found);
  return MEASURES.flatMap((measure) => {
    const count = counts[measure] ?? 0;
    const limit = limits[measure] ?? 0;
    if (count < limit) return [`${measure}: ${count}, less than the ${limit} of ${RATCHET}: npm run wording`];
    if (count === limit) return [];
    const lines = found
      .filter((remark) => remark.measure === measure)
      .map(({ line, text }) => `  line ${line}: ${text}`);
    return [`${measure}: ${count}, more than the ${limit} allowed:`, ...lines];
  });
}

function lowered(
  found: ReadonlyMap<string, readonly Remark[]>,
  limits: Record<string, Counts>,
): Record<string, Counts> {
  const entries = [...found].map(([page, onPage]) => {
    const counts = countByMeasure(onPage);
    const kept = MEASURES.map((measure) => [measure, Math.min(counts[measure] ?? 0, limits[page]?.[measure] ?? 0)]);
    return [page, Object.fromEntries(kept.filter(([, count]) => count !== 0))] as const;
  });
  return Object.fromEntries(entries.filter(([, counts]) => Object.keys(counts).length > 0));
}

/** One page a line, so that changes to different pages do not conflict. */
function ratchetText(limits: Record<string, Counts>): string {
  const lines = Object.entries(limits).map(([page, counts]) => {
    const pairs = Object.entries(counts).map(([measure, count]) => `"${measure}": ${count}`);
    return `  "${page}": { ${pairs.join(', ')} }`;
  });
  return `{\n${lines.join(',\n')}\n}\n`;
}

if (LOWERS) {
  writeFileSync(RATCHET, ratchetText(lowered(remarks, allowed)));
  const words = [...texts.values()].reduce((sum, text) => sum + wordsOf(withoutCode(text)).length, 0);
  const found = pages.flatMap((page) => remarks.get(page)!).filter(({ measure }) => measure === 'patterns').length;
  process.stdout.write(
    `${pages.length} documents, ${words} words, ${((1000 * found) / words).toFixed(2)} expressions per 1,000 words\n`,
  );
}

describe.skipIf(LOWERS)('the wording of documents', () => {
  it.each([...remarks.keys()])('%s', (page) => {
    expect(complaints(remarks.get(page)!, allowed[page] ?? {}).join('\n')).toBe('');
  });

  it('has limits for documents that exist', () => {
    expect(Object.keys(allowed).filter((page) => !remarks.has(page))).toEqual([]);
  });
});

describe('the check itself', () => {
  const measuresOf = (text: string) => remarksOnDocument(text).map(({ measure }) => measure);

  it('finds what is hard to read', () => {
    expect(measuresOf('The server is\ntold.')).toEqual(['patterns']);
    expect(measuresOf('## What it says of a rule')).toEqual(['headings']);
    expect(measuresOf('## Ports that are worse than others')).toEqual(['headings']);
    expect(measuresOf(`${'a '.repeat(31)}.`)).toEqual(['sentences']);
    expect(measuresOf(`${'Word. '.repeat(91)}`)).toContain('paragraphs');
    expect(measuresOf('From 1 to 2, 3, 4, 5, 6 and 7.')).toEqual(['numbers']);
    expect(measuresOf(`[a](${'x'.repeat(200)})`)).toEqual(['lines']);
  });

  it('reads docstrings of exported names and their members', () => {
    const docstrings = publicDocstrings((prose) => prose.startsWith('An open device (`ibv_context`)'));
    const of = (start: string) => docstrings.find(({ text }) => text.startsWith(start))?.path;
    expect(of('An open device (`ibv_context`)')).toBe('src/verbs/device.ts');
    expect(of('A new protection domain')).toBe('src/verbs/device.ts');
    expect(of('Takes over a link to a running NIC.')).toBe('src/verbs/device.ts');
    expect(docstrings.filter(({ path }) => path === 'src/verbs/completion-queue.ts')).toEqual([]);
    expect(proseOf('/**\n * The NIC of {@link RdmaDevice}.\n * @internal\n */')).toBe('The NIC of `RdmaDevice`.');
  });

  it('skips code, tables of numbers and good sentences', () => {
    expect(measuresOf('```\nis told\n```\n\n    anew\n\n`meanwhile` <!-- beside -->')).toEqual([]);
    expect(measuresOf('| 1 | 2 | 3 | 4 | 5 | 6 | 7, 8, 9 |')).toEqual([]);
    expect(measuresOf('## Path states\n\n## How to start\n\n## What is RDMA?\n\nThe peer retransmits.')).toEqual([]);
  });

  it('knows the lines of a match', () => {
    expect(remarksOnDocument('One.\n\n- two\n\nThree\nanew.').map(({ line }) => line)).toEqual([5]);
  });

  it('complains about counts that are too high and too low', () => {
    const found = remarksOnDocument('It begins anew.');
    expect(complaints(found, { patterns: 1 })).toEqual([]);
    expect(complaints(found, {})[0]).toMatch(/more than the 0 allowed/);
    expect(complaints([], { patterns: 1 })[0]).toMatch(/npm run wording/);
    expect(lowered(new Map([['a.md', found]]), { 'a.md': { patterns: 3, lines: 2 }, 'gone.md': { lines: 1 } })).toEqual(
      {
        'a.md': { patterns: 1 },
      },
    );
  });
});
