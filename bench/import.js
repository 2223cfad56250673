// How long the first import of an entry point takes, in a process of its own each time: `npm run bench:import -- --reps 15 [--base FOLDER]`. Medians; `--base` is another
// checkout with its dist/, run in turns with this one, so that what else the machine does falls on both.
import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { reps: { type: 'string', default: '11' }, base: { type: 'string' } } });
const reps = Number(values.reps);
const here = new URL('../', import.meta.url).pathname;
const folders = { here, ...(values.base !== undefined && { base: resolve(values.base) }) };
const ENTRIES = {
  rocev2: 'dist/index.js',
  'rocev2/packet': 'dist/packet/index.js',
  'rocev2/storage': 'dist/storage-rpc/index.js',
  'rocev2/window': 'dist/window/index.js',
};
const PROGRAM = `
const began = performance.now();
const { user: before } = process.cpuUsage();
await import(process.argv[1]);
console.log(JSON.stringify({ ms: performance.now() - began, cpuMs: (process.cpuUsage().user - before) / 1000 }));`;

const median = (numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1];
const rows = Object.keys(ENTRIES).flatMap((entry) =>
  Object.keys(folders).map((folder) => ({ entry, folder, ms: [], cpuMs: [] })),
);
for (let rep = 0; rep < reps; rep++) {
  for (const row of rows) {
    const file = resolve(folders[row.folder], ENTRIES[row.entry]);
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', PROGRAM, file], { encoding: 'utf8' });
    const { ms, cpuMs } = JSON.parse(stdout);
    row.ms.push(ms);
    row.cpuMs.push(cpuMs);
  }
}
console.log(`cold import, node ${process.version}, medians of ${reps}: elapsed ms, processor ms of the program`);
for (const { entry, folder, ms, cpuMs } of rows) {
  console.log(
    `${entry.padEnd(16)} ${folder.padEnd(5)} ${median(ms).toFixed(0).padStart(5)} ${median(cpuMs).toFixed(0).padStart(5)}`,
  );
}
