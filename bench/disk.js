/**
 * Random I/O of fio through whole chains of processes, side by side: our gateway with the disk in its own process, our gateway to our storage
 * server over RDMA and over TCP, and nbdkit's disk in memory, which is C and has no network behind it. Runs take turns; medians.
 *
 *     npm run bench:disk [-- --reps 3 --seconds 2]
 */

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';

const run = promisify(execFile);
const MAIN = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const SIZE = '268435456';
const CLOCK_TICK_NS = 1e7; // USER_HZ is 100 on every Linux that matters.

const { values } = parseArgs({
  options: { reps: { type: 'string', default: '3' }, seconds: { type: 'string', default: '2' } },
});
const REPS = Number(values.reps);
const SECONDS = Number(values.seconds);

const CELLS = ['randread', 'randwrite'].flatMap((op) => [
  { op, block: '8k', depth: 1 },
  { op, block: '8k', depth: 16 },
  { op, block: '8k', depth: 32 },
  { op, block: '1m', depth: 4 },
]);

const folder = mkdtempSync(join(tmpdir(), 'rocev2-bench-'));
/** @type {import('node:child_process').ChildProcess[]} */
const processes = [];

/**
 * Starts a program that says when it serves.
 * @param {string} command
 * @param {string[]} args
 * @param {RegExp} ready
 */
async function start(command, args, ready) {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  processes.push(child);
  let words = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    words += text;
  });
  while (!ready.test(words)) {
    await Promise.race([once(child.stderr, 'data'), once(child, 'exit')]);
    if (child.exitCode !== null) throw new Error(`${command} ended: ${words}`);
  }
  return child;
}

/** @param {string[]} args */
const rocev2 = (...args) => start(process.execPath, [MAIN, 'disk', ...args], /Ctrl-C ends it/);
/** @param {string} name */
const socket = (name) => join(folder, name);

/** CPU time a process has had, in nanoseconds. @param {import('node:child_process').ChildProcess} child */
function cpuNs({ pid }) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) * CLOCK_TICK_NS;
}

/**
 * @typedef {{name: string, socket: string, processes: import('node:child_process').ChildProcess[]}} Contender
 * @typedef {{iops: number, p50Us: number, p99Us: number, cpuUs: number}} Sample
 */

/** @returns {Promise<Contender[]>} */
async function contenders() {
  const server = await rocev2('serve', '--backend', 'memory', '--size', SIZE, '--bind', '127.54.2.1');
  const gateway = (/** @type {string} */ name, /** @type {string[]} */ ...args) =>
    rocev2('nbd', '--listen', `unix:${socket(name)}`, ...args);
  const meet = ['--connect', '127.54.2.1', '--shared', '--transport']; // Two gateways of one disk, which take turns.
  const rdma = await gateway('rdma', ...meet, 'rdma', '--bind', '127.54.2.2');
  const tcp = await gateway('tcp', ...meet, 'tcp');
  const alone = await gateway('alone', '--backend', 'memory', '--size', SIZE);
  const nbdkit = await start(
    'nbdkit',
    ['-f', '-v', '-U', socket('nbdkit'), 'memory', SIZE],
    /bound to|accepting|listen/,
  );
  return [
    { name: 'gateway, RDMA', socket: 'rdma', processes: [rdma, server] },
    { name: 'gateway, TCP', socket: 'tcp', processes: [tcp, server] },
    { name: 'gateway alone', socket: 'alone', processes: [alone] },
    { name: 'nbdkit', socket: 'nbdkit', processes: [nbdkit] },
  ];
}

/**
 * @param {Contender} contender
 * @param {{op: string, block: string, depth: number}} cell
 * @param {number} seconds
 * @returns {Promise<Sample>}
 */
async function measure(contender, { op, block, depth }, seconds) {
  const total = () => contender.processes.reduce((sum, child) => sum + cpuNs(child), 0);
  const before = total();
  const { stdout } = await run('fio', [
    '--name=bench',
    '--ioengine=nbd',
    `--uri=nbd+unix:///?socket=${socket(contender.socket)}`,
    `--rw=${op}`,
    `--bs=${block}`,
    `--iodepth=${depth}`,
    '--size=128m',
    '--time_based',
    `--runtime=${seconds}`,
    '--output-format=json',
  ]);
  const job = JSON.parse(stdout.slice(stdout.indexOf('{'))).jobs[0];
  const side = op === 'randread' ? job.read : job.write;
  const percentile = (/** @type {string} */ p) => side.clat_ns.percentile[p] / 1e3;
  return {
    iops: side.iops,
    p50Us: percentile('50.000000'),
    p99Us: percentile('99.000000'),
    cpuUs: (total() - before) / 1e3 / side.total_ios,
  };
}

/** @param {number[]} numbers */
const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];

async function main() {
  const all = await contenders();
  console.log(`node ${process.version}, ${cpus().length} x ${cpus()[0].model}, ${REPS} turns of ${SECONDS} s; medians`);
  console.log('CPU: of gateway and server together, or of nbdkit; not of fio\n');
  console.log(
    ['op', 'block', 'depth', 'through', 'IOPS', 'of nbdkit', 'p50 us', 'p99 us', 'CPU us/IO']
      .map((title, i) => title.padStart([9, 6, 6, 15, 8, 10, 8, 9, 10][i]))
      .join(''),
  );
  // Holes would be answered without data, and code is slow until it has been compiled.
  for (const contender of all) await measure(contender, { op: 'write', block: '1m', depth: 4 }, 1);
  for (const contender of all) await measure(contender, { op: 'randread', block: '8k', depth: 4 }, 1);
  for (const cell of CELLS) {
    /** @type {Sample[][]} */
    const samples = all.map(() => []);
    for (let rep = 0; rep < REPS; rep++) {
      for (const [i, contender] of all.entries()) samples[i].push(await measure(contender, cell, SECONDS));
    }
    const iops = samples.map((runs) => median(runs.map((sample) => sample.iops)));
    all.forEach(({ name }, i) => {
      const pick = (/** @type {keyof Sample} */ field) => median(samples[i].map((sample) => sample[field]));
      const columns = [
        cell.op.padStart(9),
        cell.block.padStart(6),
        `${cell.depth}`.padStart(6),
        name.padStart(15),
        iops[i].toFixed(0).padStart(8),
        (iops[i] / iops[all.length - 1]).toFixed(2).padStart(10),
        pick('p50Us').toFixed(0).padStart(8),
        pick('p99Us').toFixed(0).padStart(9),
        pick('cpuUs').toFixed(1).padStart(10),
      ];
      console.log(columns.join(''));
    });
  }
}

try {
  await main();
} finally {
  for (const child of processes.reverse()) {
    if (child.exitCode !== null) continue;
    child.kill('SIGINT');
    await once(child, 'exit');
  }
  rmSync(folder, { recursive: true });
}
