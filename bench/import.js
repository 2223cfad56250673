// How long the first import of an entry point takes, in a process of its own each time: `npm run bench:import -- --reps 15 [--base FOLDER]`. Medians; `--base` is another
// checkout or unpacked tarball, run in turns with this one, so that what else the machine does falls on both.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { reps: { type: 'string', default: '11' }, base: { type: 'string' } } });
const reps = Number(values.reps);
const here = new URL('../', import.meta.url).pathname;
const folders = { here, ...(values.base !== undefined && { base: resolve(values.base) }) };
const ENTRIES = ['.', './packet', './storage', './window', './rpc'];
const PROGRAM = `
const began = performance.now();
const before = process.cpuUsage();
await import(process.argv[1]);
const { user, system } = process.cpuUsage(before);
console.log(JSON.stringify({ ms: performance.now() - began, cpuMs: (user + system) / 1000 }));`;

/**
 * The file that Node loads for an entry point of the package in a folder, or undefined where it has none of that name.
 * @param {string} folder @param {string} entry
 */
function fileOf(folder, entry) {
  const { exports } = JSON.parse(readFileSync(resolve(folder, 'package.json'), 'utf8'));
  return exports[entry] && resolve(folder, exports[entry].default);
}

const median = (/** @type {number[]} */ numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1];
const rows = ENTRIES.flatMap((entry) =>
  Object.entries(folders).map(([name, folder]) => ({
    entry,
    name,
    file: fileOf(folder, entry),
    ms: /** @type {number[]} */ ([]),
    cpuMs: /** @type {number[]} */ ([]),
  })),
).filter(({ file }) => file !== undefined);
for (let rep = 0; rep < reps; rep++) {
  for (const row of rows) {
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', PROGRAM, row.file], {
      encoding: 'utf8',
    });
    const { ms, cpuMs } = JSON.parse(stdout);
    row.ms.push(ms);
    row.cpuMs.push(cpuMs);
  }
}
console.log(`cold import, node ${process.version}, medians of ${reps}: elapsed ms, processor ms of the program`);
for (const { entry, name, ms, cpuMs } of rows) {
  console.log(
    `${entry.replace('.', 'rocev2').padEnd(16)} ${name.padEnd(5)} ${median(ms).toFixed(0).padStart(5)} ${median(cpuMs).toFixed(0).padStart(5)}`,
  );
}
