/** `rocev2 sim figure`: verdicts, the gallery, and figures that take no time. `node scripts/figures-doc.js --check` runs them all. */

import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { documentOf } from '../../../../test/support/documents.js';
import { run } from '../../../cli/test/run-in-process.js';
import type { Figure } from '../../src/commands/sim/figures/figure.js';
import { figureResult, figureRow } from '../../src/commands/sim/figures/figure-report.js';
import { FIGURES } from '../../src/commands/sim/figures/index.js';

const GALLERY = readFileSync(new URL('../../docs/figures.md', import.meta.url), 'utf8');
const PICTURES = readdirSync(new URL('../../docs/pictures/figures', import.meta.url));

/** What the page has of a figure. */
function sectionOf(name: string): string {
  const [, ...sections] = GALLERY.split('\n## ');
  return sections.find((section) => section.startsWith(`${name}\n`)) ?? '';
}

function judged(by: Figure['by'], published: number, ours: number) {
  const value = { what: 'x', unit: 'KB', published, ours };
  const figure: Figure = { name: 'x', title: 'x', source: 'x', by, run: () => Promise.reject() };
  const chart = { xLabel: '', x: [], panels: [] };
  return figureResult(figure, { values: [value], chart }).values[0];
}

describe('the verdict', () => {
  it.each([
    ['fluid', 100, 105, 'inside'],
    ['fluid', 100, 95, 'inside'],
    ['fluid', 100, 105.1, 'outside'],
    ['packets', 100, 109.9, 'inside'],
    ['packets', 100, 89.9, 'outside'],
    ['fluid', -2, -2.05, 'inside'],
    ['fluid', -2, 2, 'outside'],
    ['fluid', 0, 0, 'inside'],
    ['fluid', 0, 1e-9, 'outside'],
  ] as const)('of %s, %d published and %d ours, is %s', (by, published, ours, verdict) => {
    expect(judged(by, published, ours).verdict).toBe(verdict);
  });
});

describe('the gallery', () => {
  it('has the figures of the list, in their order, and no others', () => {
    const named = [...GALLERY.matchAll(/^## (.+)$/gm)].map(([, name]) => name);
    expect(named).toEqual(FIGURES.map(({ name }) => name));
  });

  it.each(FIGURES)('tells the title, source, note and picture of $name', ({ name, title, source, note = '' }) => {
    // Paragraphs of the page are wrapped, and a path is a link there.
    const section = sectionOf(name)
      .replaceAll('\n', ' ')
      .replaceAll('[figure-notes.md](figure-notes.md)', 'packages/lab/docs/figure-notes.md');
    for (const text of [title, source, note, `pictures/figures/${name}.svg`]) expect(section).toContain(text);
  });

  it('has a picture of each figure, and no others', () => {
    expect(PICTURES.sort()).toEqual(FIGURES.map(({ name }) => `${name}.svg`).sort());
  });

  it.each(['conext16-3', 'conext16-patched-margin', 'conext16-17', 'nsdi23-macsec'])(
    'shows of %s what a run gives',
    async (name) => {
      const { exitCode, stdout } = await run(['sim', 'figure', name, '--json']);
      expect(exitCode).toBe(0);
      const { figures } = documentOf('sim-figure', stdout) as unknown as { figures: ReturnType<typeof figureResult>[] };
      const [{ values }] = figures;
      expect(values.length).toBeGreaterThan(2);
      for (const value of values) expect(sectionOf(name)).toContain(`| ${figureRow(value).join(' | ')} |`);
    },
  );
});

describe('packages/lab/docs/figure-notes.md', () => {
  const NOTES = readFileSync(new URL('../../docs/figure-notes.md', import.meta.url), 'utf8');

  it('says of each figure with a value outside why, and of no other', () => {
    const [, table = ''] = NOTES.split('## Differences');
    const named = [...table.split('\n## ')[0].matchAll(/\[(\S+)\]\(figures\.md#\1\)/g)].map(([, name]) => name);
    const outside = FIGURES.filter(({ name }) => sectionOf(name).includes('| outside |')).map(({ name }) => name);
    expect(named.sort()).toEqual(outside.sort());
  });
});

describe('the command', () => {
  it('lists all figures', async () => {
    const { stdout } = await run(['sim', 'figure', '--list', '--json']);
    const { figures } = documentOf('sim-figure', stdout) as { figures: unknown };
    expect(figures).toMatchObject(
      FIGURES.map(({ name, by }) => ({ name, by, tolerance: by === 'fluid' ? 0.05 : 0.1, values: null })),
    );
  });

  it('refuses a figure that there is not, and a name beside --list', async () => {
    const unknown = await run(['sim', 'figure', 'conext16-5']);
    expect([unknown.exitCode, unknown.stderr]).toEqual([
      2,
      expect.stringMatching(/no figure 'conext16-5'.*conext16-4/s),
    ]);
    for (const args of [[], ['ns3-pfc', '--list']]) expect((await run(['sim', 'figure', ...args])).exitCode).toBe(2);
  });
});
