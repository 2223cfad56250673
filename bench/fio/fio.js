/** What the benches with fio share: its options for a cell, what it says of one, and the table. */

/**
 * @typedef {{op: string, block: string, depth: number, offset?: string}} Cell
 * @typedef {{iops: number, p50Us: number, p99Us: number, cpuUs: number}} Sample
 */

/** Options of fio for a cell; where to is for the caller to add. @param {Cell} cell @param {number} mebibytes of the disk @param {number} seconds */
export const fioOptions = ({ op, block, depth, offset = '0' }, mebibytes, seconds) => [
  '--name=bench',
  `--rw=${op}`,
  `--bs=${block}`,
  `--iodepth=${depth}`,
  `--offset=${offset}`,
  `--size=${mebibytes}m`,
  '--time_based',
  `--runtime=${seconds}`,
  '--output-format=json',
];

/** Reads what fio printed. `cpuNs`: what its I/O has cost. @param {string} printed @param {Cell} cell @param {number} cpuNs @returns {Sample} */
export function sampleOf(printed, { op }, cpuNs) {
  const job = JSON.parse(printed.slice(printed.indexOf('{'))).jobs[0];
  const side = op.endsWith('read') ? job.read : job.write;
  if (job.error !== 0 || side.total_ios === 0) throw new Error(`fio has failed: error ${job.error}`);
  const percentile = (/** @type {string} */ p) => side.clat_ns.percentile[p] / 1e3;
  return {
    iops: side.iops,
    p50Us: percentile('50.000000'),
    p99Us: percentile('99.000000'),
    cpuUs: cpuNs / 1e3 / side.total_ios,
  };
}

/** @param {number[]} numbers */
const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];

/** The medians of samples, each value for itself; undefined: there are none. @param {readonly Sample[]} samples @returns {Sample | undefined} */
export function medianSample(samples) {
  if (samples.length === 0) return undefined;
  const pick = (/** @type {keyof Sample} */ field) => median(samples.map((sample) => sample[field]));
  return { iops: pick('iops'), p50Us: pick('p50Us'), p99Us: pick('p99Us'), cpuUs: pick('cpuUs') };
}

const WIDTHS = [10, 6, 6, 19, 9, 7, 10, 10, 11];

/** Prints the titles of a table. @param {string} reference what ratios are to */
export function printTitles(reference) {
  const titles = ['op', 'block', 'depth', 'through', 'IOPS', 'ratio', 'p50 us', 'p99 us', 'CPU us/IO'];
  console.log(titles.map((title, i) => title.padStart(WIDTHS[i])).join(''));
  console.log(`ratio: IOPS to those of ${reference}`);
}

/**
 * Measures a cell in turns and prints a line for each contender, medians. The ratio is that to the contender which `reference` names.
 * @param {Cell} cell
 * @param {readonly {name: string, reference: string}[]} contenders
 * @param {number} rounds
 * @param {(contender: number) => Promise<Sample>} measure
 */
export async function measureCell(cell, contenders, rounds, measure) {
  /** @type {Sample[][]} */
  const samples = contenders.map(() => []);
  for (let round = 0; round < rounds; round++) {
    for (const i of contenders.keys()) samples[i].push(await measure(i));
  }
  const medians = samples.map((of) => /** @type {Sample} */ (medianSample(of)));
  contenders.forEach(({ name, reference }, i) => {
    const to = contenders.findIndex((one) => one.name === reference);
    const { iops, p50Us, p99Us, cpuUs } = medians[i];
    const columns = [
      cell.op,
      cell.block,
      `${cell.depth}`,
      name,
      iops.toFixed(0),
      (iops / medians[to].iops).toFixed(2),
      p50Us.toFixed(0),
      p99Us.toFixed(0),
      cpuUs.toFixed(1),
    ];
    console.log(columns.map((text, column) => text.padStart(WIDTHS[column])).join(''));
  });
}
