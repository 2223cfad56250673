/**
 * Whether a large disk costs more than a small one: random I/O of fio on as many bytes of a disk in a file of 1 GiB, of one of 16 TiB (sparse), and far
 * behind in the latter, where other pages of the table of checksums are used. Runs take turns; medians.
 *
 *     npm run bench:disk-size [-- --reps 5 --seconds 2 --folder /var/tmp]
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Chains } from './fio/chains.js';
import { measureCell, printTitles } from './fio/fio.js';

/** Holes are answered without data: everything is written once, before. */
const WRITING_SECONDS = 10;
/** What fio uses of each disk. */
const USED_MIB = 512;
const SMALL = '1GiB';
/** As large as a file of ext4 can be in whole MiB, and almost as large as one of 16 TiB. */
const LARGE = '16777215MiB';

const { values } = parseArgs({
  options: {
    reps: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
    folder: { type: 'string', default: tmpdir() },
  },
});
const reps = Number(values.reps);
const seconds = Number(values.seconds);

const CELLS = ['randread', 'randwrite'].flatMap((op) => [
  { op, block: '4k', depth: 1 },
  { op, block: '4k', depth: 16 },
  { op, block: '64k', depth: 4 },
]);

const chains = new Chains();
const folder = mkdtempSync(join(values.folder, 'rocev2-disk-size-'));

/** @param {string} name @param {string} size */
async function gateway(name, size) {
  const backend = ['--backend', `file:${join(folder, name)}`, '--size', size];
  return chains.rocev2('disk', 'nbd', '--listen', `unix:${chains.socket(name)}`, ...backend);
}

try {
  const [small, large] = [await gateway('small', SMALL), await gateway('large', LARGE)];
  const of = (/** @type {string} */ name) => ({ reference: '1 GiB', socket: chains.socket(name) });
  const contenders = [
    { name: '1 GiB', ...of('small'), processes: [small], offset: '0' },
    { name: '16 TiB', ...of('large'), processes: [large], offset: '0' },
    { name: '16 TiB, far behind', ...of('large'), processes: [large], offset: '15t' },
  ];
  console.log(`node ${process.version}, ${cpus().length} x ${cpus()[0].model}, load ${loadavg()[0].toFixed(1)}`);
  console.log(`${USED_MIB} MiB of each disk, ${reps} turns of ${seconds} s; medians\n`);
  printTitles('1 GiB');
  for (const chain of contenders) {
    const { offset } = chain;
    await chains.measure(chain, { op: 'write', block: '1m', depth: 4, offset }, USED_MIB, WRITING_SECONDS);
  }
  for (const cell of CELLS) {
    await measureCell(cell, contenders, reps, (i) =>
      chains.measure(contenders[i], { ...cell, offset: contenders[i].offset }, USED_MIB, seconds),
    );
  }
} finally {
  await chains.close();
  rmSync(folder, { recursive: true });
}
