// @ts-check
/**
 * @rocev2/kv beside what else shares values between Node processes, interleaved in one run on this machine: Redis (by ioredis and node-redis, which pipeline),
 * the IPC of cluster, and messages of worker_threads. Installs the clients of Redis into this folder first if they are missing.
 *
 *   npm run bench:kv [-- --reps 3 --seconds 1 --only kv,ioredis --values 100,4096 --json FILE]
 *
 * Every cell: GETs a second, p50 and p99 of a GET; the median of the repetitions. `full` keeps --depth GETs in flight at each reader; `paced` asks --rate
 * GETs a second at each reader, so that no processor is full and times are those of a GET. While the owner is blocked, it computes without a break: the
 * process that has the values, and beside Redis a process that Redis does not need. A GET without an answer counts with the time that it has waited.
 */

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import os from 'node:os';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { thisMachine } from '../aims/machine.js';
import { median } from '../peers/percentiles.js';
import { endWithUs, start } from './calls.js';
import { STORES } from './stores.js';
import { keyFor, valueFor } from './values.js';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const NAMES = /** @type {Record<string, string>} */ ({
  kv: '@rocev2/kv',
  ioredis: 'Redis, ioredis',
  'node-redis': 'Redis, node-redis',
  ipc: 'cluster IPC',
  worker: 'worker_threads',
});
const OF_REDIS = ['ioredis', 'node-redis'];
const OF_A_MAP = ['ipc', 'worker'];
const LOADS = ['full', 'paced'];
const SETTLE_MS = 100;

const { values: args } = parseArgs({
  options: {
    reps: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '1' },
    keys: { type: 'string', default: '100000' },
    values: { type: 'string', default: '100,4096' },
    readers: { type: 'string', default: '1,8' },
    gets: { type: 'string', default: '0.95' },
    depth: { type: 'string', default: '32' },
    rate: { type: 'string', default: '500' },
    only: { type: 'string' },
    json: { type: 'string' },
  },
});
const numbers = (/** @type {string} */ text) => text.split(',').map(Number);
const reps = Number(args.reps);
const seconds = Number(args.seconds);
const keys = Number(args.keys);
const readerCounts = numbers(args.readers);
const common = { keys, seconds, gets: Number(args.gets), depth: Number(args.depth), rate: Number(args.rate) };

process.once('SIGINT', () => process.exit(130));

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  server.close();
  await once(server, 'close');
  return port;
}

/** Redis with all entries; undefined if there is none here. */
async function startRedis(/** @type {number} */ valueBytes) {
  const port = await freePort();
  const child = spawn(
    'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const isThere = await new Promise((resolve) => {
    let text = '';
    child.once('error', () => resolve(false));
    child.once('exit', () => resolve(false));
    child.stdout.on('data', (more) => {
      text += more;
      if (text.includes('Ready to accept connections')) resolve(true);
    });
  });
  if (!isThere) return undefined;
  child.stdout.resume();
  endWithUs(child);
  const { set, close } = await STORES['ioredis'](port);
  for (let first = 0; first < keys; first += 1000)
    await Promise.all(Array.from({ length: 1000 }, (_, k) => set(keyFor(first + k), valueFor(first + k, valueBytes))));
  close();
  return { port, end: () => child.kill('SIGKILL') };
}

/** Everything for values of one length. */
async function startAll(/** @type {string[]} */ kinds, /** @type {number} */ valueBytes) {
  const readersMax = Math.max(...readerCounts);
  const owner = start('kv-owner.js');
  const port = await owner.call('fill', { keys, valueBytes });
  const redis = kinds.some((kind) => OF_REDIS.includes(kind)) ? await startRedis(valueBytes) : undefined;
  /** @type {Record<string, number>} */
  const ports = { ...(kinds.includes('kv') && { kv: port }) };
  if (redis !== undefined) for (const kind of kinds.filter((name) => OF_REDIS.includes(name))) ports[kind] = redis.port;
  const readers = Array.from({ length: readersMax }, () => start('reader.js'));
  for (const reader of readers) await reader.call('open', ports);
  /** @type {Record<string, ReturnType<typeof start>>} */
  const maps = {};
  for (const kind of kinds.filter((name) => OF_A_MAP.includes(name))) {
    maps[kind] = start('map-owner.js');
    await maps[kind].call('fill', { kind, keys, valueBytes, readers: readersMax });
  }
  const measure = async (/** @type {any} */ { kind, readers: count, load, isBlocked }) => {
    const parameters = { ...common, kind, valueBytes, load, readers: count };
    const work =
      maps[kind]?.call('run', parameters) ??
      Promise.all(readers.slice(0, count).map((reader, k) => reader.call('run', { ...parameters, seed: k + 1 })));
    const blocking = isBlocked ? (maps[kind] ?? owner).call('block', seconds) : undefined;
    /** @type {any[]} */
    const results = await work;
    await blocking;
    await delay(SETTLE_MS);
    const sum = (/** @type {string} */ name) => results.reduce((total, result) => total + result[name], 0);
    return {
      getsPerSecond: sum('getsPerSecond'),
      setsPerSecond: sum('setsPerSecond'),
      p50Us: median(results.map(({ p50Us }) => p50Us)),
      p99Us: median(results.map(({ p99Us }) => p99Us)),
    };
  };
  return {
    kinds: kinds.filter((kind) => ports[kind] !== undefined || maps[kind] !== undefined),
    measure,
    end: () => {
      for (const one of [owner, ...readers, ...Object.values(maps), ...(redis ? [redis] : [])]) one.end();
    },
  };
}

function installClients() {
  if (existsSync(new URL('node_modules/ioredis', import.meta.url))) return;
  process.stderr.write('installing ioredis and redis into bench/kv ...\n');
  execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: FOLDER, stdio: 'inherit' });
}

const round = (/** @type {number} */ value) =>
  value >= 999.5 ? Math.round(value).toLocaleString('en') : value.toPrecision(3);

/** One table: a row for each kind, the owner idle and blocked side by side. @param {any[]} cells */
function printTable(cells) {
  const { valueBytes, readers, load } = cells[0];
  const pace = load === 'full' ? `${common.depth} in flight at each` : `${common.rate} GETs/s at each`;
  console.log(`\nvalues of ${valueBytes} B, ${readers} reader${readers === 1 ? '' : 's'}, ${pace}`);
  const titles = ['GET/s', 'p50 us', 'p99 us', 'SET/s', 'blocked: GET/s', 'p50 us', 'p99 us', 'x kv GET/s'];
  console.log(`${''.padEnd(20)}${titles.map((title) => title.padStart(16)).join('')}`);
  const rateOf = (/** @type {string} */ kind) =>
    cells.find((cell) => cell.kind === kind && !cell.isBlocked)?.getsPerSecond;
  for (const kind of new Set(cells.map((cell) => cell.kind))) {
    const [idle, blocked] = [false, true].map((isBlocked) =>
      cells.find((cell) => cell.kind === kind && cell.isBlocked === isBlocked),
    );
    const ratio = rateOf(kind) / (rateOf('kv') ?? Number.NaN);
    const row = [idle.getsPerSecond, idle.p50Us, idle.p99Us, idle.setsPerSecond];
    const line = [...row, blocked.getsPerSecond, blocked.p50Us, blocked.p99Us, ratio];
    console.log(
      `${NAMES[kind].padEnd(20)}${line.map((value) => (Number.isNaN(value) ? '' : round(value)).padStart(16)).join('')}`,
    );
  }
}

/** Whether the goals are met, from medians. @param {any[]} cells */
function printGoals(cells) {
  const find = (/** @type {object} */ wanted) =>
    cells.find((cell) => Object.entries(wanted).every(([name, value]) => cell[name] === value));
  console.log();
  for (const valueBytes of numbers(args.values)) {
    for (const readers of readerCounts) {
      const of = { kind: 'kv', valueBytes, readers, load: 'paced' };
      const [idle, blocked] = [find({ ...of, isBlocked: false }), find({ ...of, isBlocked: true })];
      if (idle === undefined) continue;
      console.log(
        `${valueBytes} B, ${readers} readers: p99 of a GET, blocked / idle owner: ${round(blocked.p99Us / idle.p99Us)} (goal: at most 2)`,
      );
    }
    const many = { valueBytes, readers: Math.max(...readerCounts), load: 'full', isBlocked: false };
    const [kv, ...redis] = ['kv', ...OF_REDIS].map((kind) => find({ ...many, kind })?.getsPerSecond);
    const best = Math.max(...redis.filter((rate) => rate !== undefined));
    if (kv !== undefined && best > 0)
      console.log(
        `${valueBytes} B, ${many.readers} readers: GETs/s, @rocev2/kv / Redis by its faster client: ${round(kv / best)} (goal: at least 1)`,
      );
  }
}

installClients();
const kinds = args.only?.split(',') ?? Object.keys(NAMES);
for (const kind of kinds)
  if (NAMES[kind] === undefined) throw new Error(`--only ${kind}: it is one of ${Object.keys(NAMES)}`);
const loadBefore = os.loadavg()[0];
/** @type {any[]} */
const cells = [];
for (const valueBytes of numbers(args.values)) {
  const all = await startAll(kinds, valueBytes);
  for (const kind of kinds.filter((name) => !all.kinds.includes(name)))
    console.error(`${NAMES[kind]}: there is no redis-server here`);
  const plan = readerCounts.flatMap((readers) =>
    LOADS.flatMap((load) =>
      [false, true].flatMap((isBlocked) =>
        all.kinds.map((kind) => ({ kind, valueBytes, readers, load, isBlocked, runs: /** @type {any[]} */ ([]) })),
      ),
    ),
  );
  for (let rep = 0; rep < reps; rep++) {
    for (const cell of plan) {
      const result = await all.measure(cell);
      cell.runs.push(result);
      const where = `${cell.valueBytes} B, ${cell.readers} readers, ${cell.load}, owner ${cell.isBlocked ? 'blocked' : 'idle'}`;
      process.stderr.write(
        `rep ${rep + 1}/${reps} ${where}: ${NAMES[cell.kind]}: ${round(result.getsPerSecond)} GET/s, p99 ${round(result.p99Us)} us\n`,
      );
    }
  }
  all.end();
  for (const { runs, ...cell } of plan) {
    const medians = Object.fromEntries(
      Object.keys(runs[0]).map((name) => [name, median(runs.map((run) => run[name]))]),
    );
    cells.push({ ...cell, ...medians, runs });
  }
}

console.log(
  `node ${process.version}, ${os.cpus().length} x ${os.cpus()[0].model.trim()}, load ${loadBefore.toFixed(1)} before, ${os.loadavg()[0].toFixed(1)} after; ${keys} keys, ${common.gets * 100} % GET, ${reps} interleaved repetitions of ${seconds} s, medians`,
);
for (const valueBytes of numbers(args.values))
  for (const readers of readerCounts)
    for (const load of LOADS)
      printTable(
        cells.filter((cell) => cell.valueBytes === valueBytes && cell.readers === readers && cell.load === load),
      );
printGoals(cells);
if (args.json !== undefined)
  writeFileSync(args.json, `${JSON.stringify({ ...(await thisMachine()), args, cells }, null, 1)}\n`);
process.exit(0);
