// @ts-check
/**
 * What this machine takes to carry packets of 4 KiB from one process to another without a protocol, in C: TCP, UDP in trains with and without sums,
 * copied or scattered to its destination, and a ring in shared memory (`limits/floor.c`). What is beyond these figures is beyond any library. Needs Linux, a C compiler, and ISA-L or libdeflate for the sums.
 *
 *   npm run bench:limits [-- --reps 5 --seconds 1]
 */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Samples } from './aims/samples.js';
import { median } from './peers/percentiles.js';
import { round } from './peers/rows.js';

const SOURCE = fileURLToPath(new URL('limits/floor.c', import.meta.url));
const PACKETS_PER_GIB = 2 ** 18;
const NS_PER_SECOND = 1e9;
/** Both ends of a ring look without sleeping, so they need a processor each. */
const RUNS = [
  ['tcp', 'two'],
  ['udp', 'two'],
  ['udp-crc', 'two'],
  ['scatter', 'two'],
  ['scatter-crc', 'two'],
  ['ring', 'two'],
  ['ring-stream', 'two'],
  ['tcp', 'one'],
  ['udp', 'one'],
  ['udp-crc', 'one'],
  ['scatter', 'one'],
  ['scatter-crc', 'one'],
];
const COLUMNS = ['MB/s', 'x tcp', 'sender ns', 'receiver ns', 'CPU s/GiB'];
const NAME_WIDTH = 24;

const { values: args } = parseArgs({
  options: { reps: { type: 'string', default: '5' }, seconds: { type: 'string', default: '1' } },
});
const folder = mkdtempSync(path.join(os.tmpdir(), 'rocev2-limits-'));
try {
  const program = path.join(folder, 'floor');
  try {
    execFileSync(process.env['CC'] ?? 'cc', ['-O2', '-o', program, SOURCE, '-ldl'], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
  } catch (error) {
    console.log(`skipped: floor.c cannot be compiled here: ${/** @type {Error} */ (error).message}`);
    process.exit();
  }
  const samples = new Samples();
  for (let rep = 0; rep < Number(args.reps); rep++) {
    for (const [way, cores] of RUNS) {
      try {
        const { megabytesPerSecond, senderNs, receiverNs } = JSON.parse(
          execFileSync(program, [way, cores, args.seconds], { encoding: 'utf8' }),
        );
        samples.add(`${way} ${cores}`, rep, { value: megabytesPerSecond, senderNs, receiverNs });
      } catch (error) {
        samples.fail(`${way} ${cores}`, rep, /** @type {Error} */ (error).message);
      }
    }
  }
  console.log(
    `${os.cpus()[0].model}, ${os.availableParallelism()} cores, load ${os.loadavg()[0].toFixed(1)}; medians of ${args.reps} in turns`,
  );
  console.log(''.padEnd(NAME_WIDTH) + COLUMNS.map((head) => head.padStart(13)).join(''));
  for (const [way, cores] of RUNS) {
    const name = `${way} ${cores}`;
    const of = (/** @type {string} */ kind) => samples.numbers(name, kind);
    const label = `${way}, ${cores} ${cores === 'one' ? 'core' : 'cores'}`.padEnd(NAME_WIDTH);
    if (of('value').length === 0) {
      console.log(`${label} ${samples.failureText(name)}`);
      continue;
    }
    const [senderNs, receiverNs] = [median(of('senderNs')), median(of('receiverNs'))];
    const cells = [
      median(of('value')),
      median(samples.ratios(name, `tcp ${cores}`)),
      senderNs,
      receiverNs,
      ((senderNs + receiverNs) * PACKETS_PER_GIB) / NS_PER_SECOND,
    ];
    console.log(label + cells.map((cell) => round(cell).padStart(13)).join(''));
  }
} finally {
  rmSync(folder, { recursive: true });
}
