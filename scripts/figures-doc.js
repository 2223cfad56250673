// Runs the figures of `rocev2 sim figure`, and writes packages/lab/docs/figures.md and packages/lab/docs/pictures/figures: `npm run build && node scripts/figures-doc.js`.
// With names it runs these, and leaves what the page has of the others: `node scripts/figures-doc.js ns3-pfc conext16-4`.
// With --check it only says which figures are not as the page has them. The runs are in virtual time: every machine gets the same page.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { figureLab } from '../build/packages/lab/src/commands/sim/figures/figure.js';
import {
  FIGURE_COLUMNS,
  figureChart,
  figureResult,
  figureRow,
} from '../build/packages/lab/src/commands/sim/figures/figure-report.js';
import { FIGURES } from '../build/packages/lab/src/commands/sim/figures/index.js';
import { wrap } from './wrap.js';

const page = new URL('../packages/lab/docs/figures.md', import.meta.url);
const pictures = new URL('../packages/lab/docs/pictures/figures/', import.meta.url);
const check = process.argv.includes('--check');
const names = process.argv.slice(2).filter((argument) => argument !== '--check');
const unknown = names.filter((name) => !FIGURES.some((figure) => figure.name === name));
if (unknown.length > 0) {
  console.error(`no such figure: ${unknown.join(', ')}; 'rocev2 sim figure --list' has their names`);
  process.exit(2);
}

const HEAD = `# Published figures and our values

This page compares published values with those of \`rocev2 sim figure\`. \`scripts/figures-doc.js\` runs all figures
and writes it. Each figure is one command:

    rocev2 sim figure NAME --plot figure.svg

Published values are read off figures, are data of the authors, or come from an ns-3 simulator. A value is *inside* if
it differs by at most 5 % (fluid models) or 10 % (packets). If a publication gives only an order, the published value
is 1, and ours is 1 for the same order. [figure-notes.md](figure-notes.md) explains values that are outside.
`;

/** What the page has now, by name: a row of the overview and a section. */
const before = readFileSync(page, 'utf8');
const rowBefore = new Map([...before.matchAll(/^\| \[([\w-]+)\]\(#.*$/gm)].map(([row, name]) => [name, row]));
const sectionBefore = new Map(
  before
    .split(/^(?=## )/m)
    .slice(1)
    .map((section) => [section.slice(3, section.indexOf('\n')), section.replace(/\n*$/, '\n')]),
);

const lab = figureLab();
const rows = [];
const sections = [];
const different = [];
mkdirSync(pictures, { recursive: true });
for (const figure of FIGURES) {
  const { name } = figure;
  if (names.length > 0 && !names.includes(name)) {
    rows.push(rowBefore.get(name) ?? '');
    sections.push(sectionBefore.get(name) ?? '');
    continue;
  }
  const run = await figure.run(lab);
  const { row, section } = textOf(figureResult(figure, run));
  const path = new URL(`${name}.svg`, pictures);
  const picture = figureChart(figure, run);
  const isSame = row === rowBefore.get(name) && section === sectionBefore.get(name) && picture === contentOf(path);
  if (!isSame) different.push(name);
  console.log(`${name}: ${isSame ? 'as on the page' : 'differs'}`);
  rows.push(row);
  sections.push(section);
  if (!check) writeFileSync(path, picture);
}

const overview = ['| figure | what it shows | by | values inside |', '|---|---|---|---|', ...rows, ''].join('\n');
const text = [wrap(HEAD), overview, ...sections].join('\n');
const unlisted = readdirSync(pictures).filter((file) => !FIGURES.some(({ name }) => file === `${name}.svg`));
if (!check) {
  for (const file of unlisted) rmSync(new URL(file, pictures));
  writeFileSync(page, text);
} else if (text !== before || different.length > 0 || unlisted.length > 0) {
  console.error(
    `packages/lab/docs/figures.md is not what the figures give: npm run build && node scripts/figures-doc.js ${different.join(' ')}`,
  );
  process.exitCode = 1;
}

/** A figure as the page has it. */
function textOf({ name, title, source, by, note, values }) {
  const inside = values.filter(({ verdict }) => verdict === 'inside').length;
  const table = [
    FIGURE_COLUMNS.map((column) => column.title),
    FIGURE_COLUMNS.map(() => '---'),
    ...values.map(figureRow),
  ];
  const section = [
    `## ${name}`,
    '',
    `${title}. Source: ${source}.`,
    '',
    ...table.map((cells) => `| ${cells.join(' | ')} |`),
    '',
    ...(note === null
      ? []
      : [note.replaceAll('packages/lab/docs/figure-notes.md', '[figure-notes.md](figure-notes.md)'), '']),
    `![${title}](pictures/figures/${name}.svg)`,
    '',
  ].join('\n');
  return { row: `| [${name}](#${name}) | ${title} | ${by} | ${inside} of ${values.length} |`, section: wrap(section) };
}

function contentOf(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined; // A new figure.
  }
}
