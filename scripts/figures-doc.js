// Runs all figures of `rocev2 sim figure`, and writes docs/figures.md and docs/pictures/figures: `npm run build && node scripts/figures-doc.js`.
// With --check it only says whether the page is what it would write. The runs are in virtual time: every machine gets the same page.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { figureLab } from '../dist/cli/sim/figures/figure.js';
import { FIGURE_COLUMNS, figureChart, figureResult, figureRow } from '../dist/cli/sim/figures/figure-report.js';
import { FIGURES } from '../dist/cli/sim/figures/index.js';

const page = new URL('../docs/figures.md', import.meta.url);
const pictures = new URL('../docs/pictures/figures/', import.meta.url);
const check = process.argv.includes('--check');

const HEAD = `# Published figures beside ours

Written by \`scripts/figures-doc.js\`, which runs them all. Each is one command:

    rocev2 sim figure NAME --plot figure.svg

Values are read off the published figures, are data of their authors, or are those of an ns-3 simulator. Ours is *inside* if it differs by no more than 5 % (fluid models) or 10 % (packets, which
draw other random numbers). These limits belong to the method, and no figure has one of its own. Where a publication has an order and no
number, the published value is 1, and ours is 1 if it has the same order, else 0. [fluid.md](fluid.md) and [lab.md](lab.md) say more about what is outside.
`;

const lab = figureLab();
const sections = [];
const totals = [];
if (!check) {
  rmSync(pictures, { recursive: true, force: true });
  mkdirSync(pictures, { recursive: true });
}
for (const figure of FIGURES) {
  const run = await figure.run(lab);
  const { name, title, source, by, note, values } = figureResult(figure, run);
  const inside = values.filter(({ verdict }) => verdict === 'inside').length;
  totals.push(`| [${name}](#${name}) | ${title} | ${by} | ${inside} of ${values.length} |`);
  const table = [
    FIGURE_COLUMNS.map((column) => column.title),
    FIGURE_COLUMNS.map(() => '---'),
    ...values.map(figureRow),
  ];
  sections.push(
    [
      `## ${name}`,
      '',
      `${title}. Source: ${source}.`,
      '',
      ...table.map((cells) => `| ${cells.join(' | ')} |`),
      '',
      ...(note === null ? [] : [note, '']),
      `![${title}](pictures/figures/${name}.svg)`,
      '',
    ].join('\n'),
  );
  if (!check) writeFileSync(new URL(`${name}.svg`, pictures), figureChart(run));
}

const overview = ['| figure | what it shows | by | values inside |', '|---|---|---|---|', ...totals, ''].join('\n');
const text = [HEAD, overview, ...sections].join('\n');
if (!check) writeFileSync(page, text);
else if (readFileSync(page, 'utf8') !== text) {
  console.error('docs/figures.md is not what the figures give: npm run build && node scripts/figures-doc.js');
  process.exitCode = 1;
}
