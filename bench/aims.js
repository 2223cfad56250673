// @ts-check
/**
 * Every aim of this project for speed on one machine beside what it reaches now: pairs of `bench:peers`, `rocev2 disk bench`, `bench:first-touch`, fio through a
 * gateway, and what idle programs cost, in turns, repetition after repetition, until the time is over. Prints one table in Markdown.
 *
 *   npm run bench:aims [-- --minutes 15 --reps 5 --only bulk,disk --json FILE]
 *   npm run aims:table   # writes bench/aims/results.json, and from it the tables of docs/performance.md and README.md
 *
 * The first repetition is whole if the time allows; a later one stops where it would take longer than is left. `--only`: beginnings of the names of samples.
 */

import { writeFileSync } from 'node:fs';
import os from 'node:os';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { AIMS, DISK_KINDS } from './aims/list.js';
import { hasNativeCrc, machineText, portLines, thisMachine } from './aims/machine.js';
import { diskStep, FIRST_TOUCH_CODE, firstTouchStep, gatewayStep, idleStep, mappedStep } from './aims/processes.js';
import { runSteps } from './aims/repetitions.js';
import { Samples } from './aims/samples.js';
import { verdictOn, verdictTable } from './aims/verdict.js';
import { measures } from './peers/measures.js';
import { runPair, sampleOf } from './peers/pairs.js';

const BULK_BYTES = 1024 ** 3;
const FAIR_SECONDS = 1;
const DISK_CELL = '300ms';
const GATEWAY_SECONDS = 1;
const IDLE_SECONDS = 10;
const MS_PER_MINUTE = 60_000;

const { values: args } = parseArgs({
  options: {
    minutes: { type: 'string', default: '15' },
    reps: { type: 'string', default: '5' },
    only: { type: 'string' },
    json: { type: 'string' },
  },
});

/** A step for each pair of `bench:peers` that an aim needs. @returns {import('./aims/processes.js').Step[]} */
function peerSteps() {
  const needed = new Set(AIMS.flatMap(({ of, to }) => [of, to ?? of]));
  return Object.entries(measures({ bulkBytes: BULK_BYTES, seconds: FAIR_SECONDS })).flatMap(([name, measure]) =>
    /** @type {any[]} */ (measure.runs)
      .map((run) => ({ run, key: `${name}: ${run.name}` }))
      .filter(({ key }) => needed.has(key))
      .map(({ run, key }) => ({
        name: key,
        samples: [key],
        run: async (/** @type {(name: string, sample: import('./aims/samples.js').Sample) => void} */ add) =>
          add(key, sampleOf(measure, await runPair(run))),
      })),
  );
}

const engines = /** @type {const} */ (['inline', 'worker']);
const only = args.only?.split(',');
const steps = [
  ...peerSteps(),
  mappedStep(),
  ...DISK_KINDS.map((kind) => diskStep(DISK_CELL, kind)),
  ...engines.flatMap((engine) => Object.keys(FIRST_TOUCH_CODE).map((code) => firstTouchStep(engine, code))),
  gatewayStep(GATEWAY_SECONDS),
  idleStep(IDLE_SECONDS),
].filter((step) => only === undefined || step.samples.some((name) => only.some((part) => name.startsWith(part))));

const machine = await thisMachine();
const samples = new Samples();
const startMs = performance.now();
const begun = await runSteps(steps, samples, {
  reps: Number(args.reps),
  deadlineMs: startMs + Number(args.minutes) * MS_PER_MINUTE,
  nowMs: () => performance.now(),
  progress: (text) => process.stderr.write(`${((performance.now() - startMs) / 1000).toFixed(0)} s, ${text}\n`),
});
machine.load.after = os.loadavg();

const names = new Set(steps.flatMap((step) => step.samples));
const aims = AIMS.filter(({ of }) => names.has(of));
const verdicts = aims.map((aim) => verdictOn(aim, samples, { hasNativeCrc: hasNativeCrc(machine) }));
const rows = [...names].map((name) => {
  const [first, ...more] = samples.of(name);
  const most = (/** @type {string} */ kind) => Math.max(0, ...samples.numbers(name, kind));
  return {
    name,
    port: first?.['port'],
    repetitions: first === undefined ? 0 : 1 + more.length,
    retransmitted: most('retransmitted'),
    timeouts: most('timeouts'),
  };
});
console.log(
  `${machineText(machine)}, repetitions begun: ${begun}, in ${((performance.now() - startMs) / MS_PER_MINUTE).toFixed(1)} minutes`,
);
for (const line of portLines(rows.map(({ name, port }) => ({ name: name.slice(name.indexOf(': ') + 2), port }))))
  console.log(line);
const repeated = rows.filter(
  ({ retransmitted, timeouts, name }) => retransmitted + timeouts > 0 && !name.startsWith('loss: '),
);
console.log(
  repeated.length === 0
    ? 'No pair sent a packet again and no timer fired, except where packets are lost on purpose.'
    : `Sent again, and timeouts, the most of a repetition: ${repeated.map(({ name, retransmitted, timeouts }) => `${name} ${retransmitted}, ${timeouts}`).join('; ')}`,
);
console.log(`\n${verdictTable(verdicts)}`);
if (args.json !== undefined) {
  const all = [...names].map((name) => ({ name, samples: samples.of(name), ...samples.failures(name) }));
  writeFileSync(args.json, `${JSON.stringify({ ...machine, reps: begun, aims: verdicts, samples: all }, null, 1)}\n`);
}
if (verdicts.some(({ now }) => now === null)) process.exitCode = 1;
