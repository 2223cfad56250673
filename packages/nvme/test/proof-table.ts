/** The table of proofs in docs/results.md: read, merged with what a run has shown, and written. */

import { KERNELS, type Kernel, PROOF_TITLES, PROOFS, type Proof } from './proofs.js';

/** What a test has shown on a kernel. */
export interface Shown {
  /** The test with its suites. */
  readonly test: string;
  /** As `uname -r` says. */
  readonly release: string;
  readonly result: 'passed' | 'FAILED';
  /** `2026-11-26`. */
  readonly day: string;
}

/** Cells of the table, by the test and the kernel: `passed 2026-11-26`. */
export type ProofTable = Map<string, Partial<Record<Kernel, string>>>;

const BEGIN = '<!-- From here on: written by `npm run nvme:table` -->';
const END = '<!-- Up to here -->';
const COLUMNS = 2;
/** The cell of a test that is for the other kernel alone. */
const NOT_ASKED = '-';

/** The kernel of a release; undefined for one that has no column. */
export function kernelOf(release: string): Kernel | undefined {
  const version = /^\d+\.\d+/.exec(release)?.[0];
  return KERNELS.find((kernel) => kernel === version);
}

/** The table that a document has; empty where it has none. */
export function readTable(document: string): { table: ProofTable; releases: Partial<Record<Kernel, string>> } {
  const [, text = ''] = document.split(BEGIN);
  const rows = text
    .split(END)[0]
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    );
  const [head, ...body] = rows;
  const releases: Partial<Record<Kernel, string>> = {};
  KERNELS.forEach((kernel, i) => {
    const release = head?.[COLUMNS + i]?.split(' ')[1];
    if (release !== undefined && release !== kernel) releases[kernel] = release;
  });
  const table: ProofTable = new Map();
  for (const [, test, ...cells] of body) {
    table.set(
      test,
      Object.fromEntries(KERNELS.map((kernel, i) => [kernel, cells[i]]).filter(([, cell]) => cell !== '')),
    );
  }
  return { table, releases };
}

/** The document with what a run has shown: cells of other tests and kernels stay, and rows that are no proof any more go. */
export function withShown(document: string, shown: readonly Shown[], proofs: readonly Proof[] = PROOFS): string {
  const [before, rest] = document.split(BEGIN);
  if (rest === undefined || !rest.includes(END)) throw new Error(`the document has no place for the table: ${BEGIN}`);
  const { table, releases } = readTable(document);
  for (const { test, release, result, day } of shown) {
    const kernel = kernelOf(release);
    if (kernel === undefined) throw new Error(`the table has no column for Linux ${release}`);
    table.set(test, { ...table.get(test), [kernel]: `${result} ${day}` });
    releases[kernel] = release;
  }
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const lines = [
    row(['proof', 'test', ...KERNELS.map((kernel) => `Linux ${releases[kernel] ?? kernel}`)]),
    `|${'---|'.repeat(COLUMNS + KERNELS.length)}`,
    ...proofs.map(({ number, test, kernels }) =>
      row([
        `${number}`,
        test,
        ...KERNELS.map((kernel) => (kernels.includes(kernel) ? (table.get(test)?.[kernel] ?? '') : NOT_ASKED)),
      ]),
    ),
  ];
  const titles = Object.entries(PROOF_TITLES).map(([number, title]) => `${number}. ${title}`);
  const text = [BEGIN, '', ...titles, '', ...lines, '', END].join('\n');
  return `${before}${text}${rest.slice(rest.indexOf(END) + END.length)}`;
}

/** What a document lacks of the proofs, in words: rows, and cells that do not say `passed`. */
export function lacks(document: string, proofs: readonly Proof[] = PROOFS): string[] {
  const { table } = readTable(document);
  return proofs.flatMap(({ test, kernels }) => {
    const cells = table.get(test);
    if (cells === undefined) return [`no row: ${test}`];
    return kernels
      .filter((kernel) => !/^passed \d{4}-\d\d-\d\d$/.test(cells[kernel] ?? ''))
      .map((kernel) => `${test} on ${kernel}: ${cells[kernel] ?? 'not run'}`);
  });
}
