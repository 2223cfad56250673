// @ts-check
/**
 * rocev2 beside what else moves bytes between two Node processes, interleaved in one run on this machine: the only comparison that means
 * something on a shared one. Installs the competitors into this folder first if they are missing.
 *
 *   npm run bench:peers [-- --reps 3 --only bulk,rate --who shm,net --bulk 1GiB --json FILE --svg FILE]
 *
 * Everybody has integrity on (TCP's checksum, our ICRC), data end in one buffer of the receiver, and both ends are processes of their own. A pair that
 * fails is counted in its row with the reason, and the others go on; the exit code is 1 when a row has no value at all.
 */

import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { AIMS } from '../aims/list.js';
import { hasNativeCrc, machineText, portLines, thisMachine } from '../aims/machine.js';
import { Samples } from '../aims/samples.js';
import { verdictOn, verdictTable } from '../aims/verdict.js';
import { barCharts } from './chart.js';
import { measures } from './measures.js';
import { memoryPerConnection } from './memory.js';
import { runPair, sampleOf } from './pairs.js';
import { round, rowsOf, tableText } from './rows.js';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const MIB = 1024 * 1024;

/** Those that are packages of npm. What cannot be installed fails in its rows. */
const PACKAGES = ['ws', 'grpc', 'udx'];
const INSTALL_LIMIT_MS = 120_000;

function installPeers() {
  if (existsSync(new URL('node_modules/ws', import.meta.url))) return;
  process.stderr.write('installing ws, @grpc/grpc-js and udx-native into bench/peers ...\n');
  try {
    const options = /** @type {const} */ ({ cwd: FOLDER, stdio: 'inherit', timeout: INSTALL_LIMIT_MS });
    execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], options);
  } catch (error) {
    process.stderr.write(`they cannot be installed: ${/** @type {Error} */ (error).message}\n`);
  }
}

const { values: args } = parseArgs({
  options: {
    reps: { type: 'string', default: '3' },
    only: { type: 'string' },
    who: { type: 'string' },
    bulk: { type: 'string', default: '1GiB' },
    seconds: { type: 'string', default: '1' },
    json: { type: 'string' },
    svg: { type: 'string' },
  },
});
const bulkBytes = Number.parseFloat(args.bulk) * (args.bulk.endsWith('GiB') ? 1024 : 1) * MIB;
const isChosen = (/** @type {string} */ name) => args.only === undefined || args.only.split(',').includes(name);
/** Parts of the names of those who take part. */
const who = args.who?.split(',');
const chosen = Object.entries(measures({ bulkBytes, seconds: Number(args.seconds) }))
  .filter(([name]) => isChosen(name))
  .map(([name, measure]) => {
    const takesPart = (/** @type {{name: string}} */ run) =>
      who === undefined || who.some((part) => run.name.includes(part));
    return { name, measure: { ...measure, runs: /** @type {any[]} */ (measure.runs).filter(takesPart) } };
  });
if (chosen.some(({ measure }) => measure.runs.some(({ transport }) => PACKAGES.includes(transport)))) installPeers();
const machine = await thisMachine();
const samples = new Samples();
const reps = Number(args.reps);
for (let rep = 0; rep < reps; rep++) {
  for (const { name, measure } of chosen) {
    for (const run of measure.runs) {
      const key = `${name}: ${run.name}`;
      let text;
      try {
        const sample = sampleOf(measure, await runPair(run));
        samples.add(key, rep, sample);
        text = `${round(sample.value)} ${measure.unit}`;
      } catch (error) {
        const { message } = /** @type {Error} */ (error);
        samples.fail(key, rep, message);
        text = `failed: ${message}`;
      }
      process.stderr.write(`rep ${rep + 1}/${reps} ${key}: ${text}\n`);
    }
  }
}
const document = {
  ...machine,
  reps,
  measures: /** @type {any[]} */ (
    chosen.map(({ name, measure }) => {
      const { title, unit, better } = measure;
      return { name, title, unit, better, rows: rowsOf(name, measure, samples) };
    })
  ),
  aims: AIMS.filter(({ of, to }) => [of, to ?? of].every((name) => samples.failures(name).tried > 0)).map((aim) =>
    verdictOn(aim, samples, { hasNativeCrc: hasNativeCrc(machine) }),
  ),
};
if (isChosen('memory')) {
  document.measures.push({
    name: 'memory',
    title: 'memory of an idle one, at one end',
    unit: 'KiB',
    better: 'less',
    rows: await memoryPerConnection(),
  });
}
document.load.after = os.loadavg();

console.log(`${machineText(document)}, ${reps} interleaved repetitions`);
const rows = document.measures.flatMap((measure) => measure.rows);
for (const line of portLines(rows)) console.log(line);
for (const measure of document.measures) console.log(`\n${tableText(measure)}`);
if (document.aims.length > 0) console.log(`\naims\n\n${verdictTable(document.aims)}`);
if (args.json !== undefined) writeFileSync(args.json, `${JSON.stringify(document, null, 1)}\n`);
if (args.svg !== undefined) writeFileSync(args.svg, barCharts(document));
if (rows.some(({ median }) => median === null)) process.exitCode = 1;
