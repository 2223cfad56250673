// @ts-check
/** The rows of a measurement: medians over the repetitions, what failed, and the table in text. */

import { spread } from '../aims/samples.js';
import { median } from './percentiles.js';

const medianOrNull = (/** @type {number[]} */ numbers) => (numbers.length === 0 ? null : median(numbers));
const mostOrNull = (/** @type {number[]} */ numbers) => (numbers.length === 0 ? null : Math.max(...numbers));

/**
 * One row for each who takes part. Numbers that were not measured are null; `failed` counts repetitions without a value and says why.
 * @param {string} name of the measurement
 * @param {{runs: readonly {name: string}[]}} measure
 * @param {import('../aims/samples.js').Samples} samples
 */
export function rowsOf(name, { runs }, samples) {
  return runs.map((run) => {
    const key = `${name}: ${run.name}`;
    const values = samples.numbers(key);
    const failure = samples.failures(key);
    const [first] = samples.of(key);
    return {
      name: run.name,
      ...(values.length === 0 ? { median: null, min: null, max: null } : spread(values)),
      // Within each repetition, because both had the machine in the same minute.
      ratio: medianOrNull(samples.ratios(key, `${name}: ${runs[0].name}`)),
      p99: medianOrNull(samples.numbers(key, 'p99')),
      cpuSecondsPerGib: medianOrNull(samples.numbers(key, 'cpu')),
      warmUp: medianOrNull(samples.numbers(key, 'warmUp')),
      steady: medianOrNull(samples.numbers(key, 'steady')),
      steadyCpuSecondsPerGib: medianOrNull(samples.numbers(key, 'steadyCpu')),
      // The most of a repetition: a median would hide the one in which the timer fired.
      retransmitted: mostOrNull(samples.numbers(key, 'retransmitted')),
      timeouts: mostOrNull(samples.numbers(key, 'timeouts')),
      ...(first?.['port'] !== undefined && { port: first['port'] }),
      ...(first?.['extra'] !== undefined && { extra: first['extra'] }),
      ...(failure.failed > 0 && { failed: failure }),
    };
  });
}

/** Three digits, or all of those before the point. @param {number} value */
export const round = (value) =>
  value >= 999.5 ? Math.round(value).toLocaleString('en') : value === 0 ? '0' : value.toPrecision(3);

/** Columns by the field of a row; one without any number is left out. */
const COLUMNS = /** @type {const} */ ([
  ['median', 'median'],
  ['min', 'min'],
  ['max', 'max'],
  ['ratio', 'x first'],
  ['p99', 'p99'],
  ['cpuSecondsPerGib', 'CPU s/GiB'],
  ['warmUp', 'warm-up'],
  ['steady', 'steady'],
  ['steadyCpuSecondsPerGib', 'CPU s/GiB'],
  ['retransmitted', 'resent'],
  ['timeouts', 'timeouts'],
]);
const NAME_WIDTH = 40;

/** @param {{title: string, unit: string, rows: any[]}} measure */
export function tableText({ title, unit, rows }) {
  const isThere = (/** @type {number | null | undefined} */ cell) => cell !== null && cell !== undefined;
  const columns = COLUMNS.filter(([field]) => rows.some((row) => isThere(row[field])));
  const lines = [
    `${title} [${unit}]`,
    `${''.padEnd(NAME_WIDTH)}${columns.map(([, head]) => head.padStart(11)).join('')}`,
  ];
  for (const row of rows) {
    const { failed } = row;
    const cells = columns.map(([field]) => row[field]);
    const extra = Object.entries(row.extra ?? {}).map(([name, value]) => ` ${name} ${round(value)}`);
    const failure = failed === undefined ? '' : ` failed ${failed.failed} of ${failed.tried}: ${failed.reason}`;
    lines.push(
      `${row.name.padEnd(NAME_WIDTH)}${cells.map((cell) => (isThere(cell) ? round(cell) : '').padStart(11)).join('')}${extra.join('')}${failure}`,
    );
  }
  return lines.join('\n');
}
