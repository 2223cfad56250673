/** The table of packages/nvme/docs/results.md that `npm run bench:nvme -- --part guests --write` fills: a run replaces the rows that it has measured, others stay. */

const BEGIN = '<!-- From here on: written by `npm run bench:nvme -- --part guests --write` -->';
const END = '<!-- So far -->';
/** A row is the same as another if these are. */
const KEY_COLUMNS = 4;

const cellsOf = (/** @type {string} */ row) =>
  row
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim());
const rowOf = (/** @type {readonly string[]} */ cells) => `| ${cells.join(' | ')} |`;
const keyOf = (/** @type {string} */ row) => cellsOf(row).slice(0, KEY_COLUMNS).join(' ');

/** Small figures have a decimal. @param {number} value */
const figureOf = (value) => value.toFixed(value < 100 ? 1 : 0);

const TITLES = [
  ...['I/O', 'block', 'depth', 'over'],
  ...['IOPS: nvmet', 'rocev2', 'ratio'],
  ...['p50 ms: nvmet', 'rocev2', 'p99 ms: nvmet', 'rocev2'],
  ...['CPU ms an I/O: nvmet', 'rocev2', 'ratio', 'measured, load'],
];

/** Titles and rule of the table. */
export const GUEST_HEAD = [rowOf(TITLES), `|${'---|'.repeat(TITLES.length)}`];

/**
 * One cell over one transport. A target that did not end in time has no numbers.
 * @param {{cell: import('../fio/fio.js').Cell, transport: string, nvmet: import('../fio/fio.js').Sample | undefined,
 *   rocev2: import('../fio/fio.js').Sample | undefined}} row
 * @param {string} when
 */
export function guestRow({ cell, transport, nvmet, rocev2 }, when) {
  const both = [nvmet, rocev2];
  const numbers = (/** @type {keyof import('../fio/fio.js').Sample} */ field, /** @type {number} */ unit) =>
    both.map((sample) => (sample === undefined ? 'none in time' : figureOf(sample[field] / unit)));
  const ratio = (/** @type {keyof import('../fio/fio.js').Sample} */ field) =>
    nvmet === undefined || rocev2 === undefined ? '' : (rocev2[field] / nvmet[field]).toFixed(2);
  return rowOf([
    ...[cell.op, cell.block, `${cell.depth}`, transport],
    ...[...numbers('iops', 1), ratio('iops')],
    ...[...numbers('p50Us', 1e3), ...numbers('p99Us', 1e3)],
    ...[...numbers('cpuUs', 1e3), ratio('cpuUs'), when],
  ]);
}

/** The document with these rows; rows that it has stay, in the order of fio's names. @param {string} document @param {readonly string[]} rows */
export function withGuestRows(document, rows) {
  const [before, rest] = document.split(BEGIN);
  if (rest === undefined || !rest.includes(END)) throw new Error(`the document has no place for the table: ${BEGIN}`);
  const [table] = rest.split(END);
  const old = table.split('\n').filter((line) => /^\| rand/.test(line));
  const all = new Map([...old, ...rows].map((row) => [keyOf(row), row]));
  const order = (/** @type {string} */ row) => {
    const [op, block, depth, transport] = cellsOf(row);
    return [op, block === '4k' ? 0 : 1, depth.padStart(3, '0'), transport].join(' ');
  };
  const sorted = [...all.values()].sort((a, b) => (order(a) < order(b) ? -1 : 1));
  return `${before}${[BEGIN, '', ...GUEST_HEAD, ...sorted, '', END].join('\n')}${rest.slice(rest.indexOf(END) + END.length)}`;
}
