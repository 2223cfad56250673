// @ts-check
/**
 * rocev2 beside what else moves bytes between two Node processes, interleaved in one run on this machine: the only comparison that means
 * something on a shared one. Installs the competitors into this folder first if they are missing.
 *
 *   npm run bench:peers [-- --reps 3 --only bulk,rate --who shm,net --bulk 1GiB --json FILE --svg FILE]
 *
 * Everybody has integrity on (TCP's checksum, our ICRC), data end in one buffer of the receiver, and both ends are processes of their own.
 */

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { barCharts } from './chart.js';
import { jsonLines } from './lines.js';
import { memoryPerConnection } from './memory.js';
import { median } from './percentiles.js';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const CHILD = fileURLToPath(new URL('child.js', import.meta.url));
const MIB = 1024 * 1024;
const KIB = 1024;

/** @typedef {{name: string, transport: string, options?: object}} Competitor */

const ours = (/** @type {'inline'|'worker'} */ engine, /** @type {'dgram'|'mmsg'|'shm'} */ io, spin = false) => ({
  name: `rocev2 ${io}/${engine}${spin ? ', spins' : ''}`,
  transport: 'rocev2',
  options: { engine, io, spin },
});
const OURS = [
  ours('inline', 'dgram'),
  ours('worker', 'dgram', true),
  ours('inline', 'mmsg'),
  ours('worker', 'mmsg', true),
  ours('inline', 'mmsg', true),
  ours('inline', 'shm'),
  ours('inline', 'shm', true),
  ours('worker', 'shm', true),
];
const THEIRS = ['net', 'http2', 'ws', 'grpc', 'udx'].map((transport) => ({ name: NAMES()[transport], transport }));

function NAMES() {
  return /** @type {Record<string, string>} */ ({
    net: 'node:net, framed',
    http2: 'node:http2',
    ws: 'ws',
    grpc: '@grpc/grpc-js',
    udx: 'udx-native',
  });
}

/** What is measured: who takes part, with which options, and which number counts. */
function measures(/** @type {{bulkBytes: number, seconds: number}} */ { bulkBytes, seconds }) {
  // Code is compiled while it runs: without a warm-up the compiler is measured as well.
  const bulk = { messageBytes: 4 * MIB, messages: Math.max(1, Math.round(bulkBytes / (4 * MIB))), warmUp: 48 };
  const slow = { ...bulk, messages: Math.ceil(bulk.messages / 4), warmUp: 12 };
  const many = { messages: 5000, warmUp: 5000 };
  const few = { messages: 200, warmUp: 20 };
  const roundTrip = (/** @type {number} */ messageBytes) => ({
    title: `${sizeText(messageBytes)} round trip`,
    unit: 'us',
    better: 'less',
    runs: [
      ...[...OURS, ours('worker', 'mmsg'), ours('worker', 'shm'), ...THEIRS].map((c) => ({
        ...c,
        measure: 'roundTrip',
      })),
      { name: 'bare datagrams', transport: 'dgram', measure: 'roundTrip' },
    ].map((run) => ({ ...run, with: { messageBytes, ...(run.transport === 'udx' ? few : many) } })),
    value: latencyP50,
  });
  const oneSided = (/** @type {'write' | 'read'} */ measure) => ({
    title: `one-sided ${measure.toUpperCase()} of 4 KiB`,
    unit: 'us',
    better: 'less',
    runs: [
      ...[...OURS, ours('worker', 'mmsg'), ours('worker', 'shm')].map((c) => ({ ...c, measure })),
      { ...THEIRS[0], name: 'node:net, a round trip', measure: 'roundTrip' },
    ].map((run) => ({ ...run, with: { messageBytes: 4 * KIB, ...many } })),
    value: latencyP50,
  });
  return {
    bulk: {
      title: `${sizeText(bulkBytes)} in messages of 4 MiB`,
      unit: 'MB/s',
      better: 'more',
      runs: [
        ...[...OURS, ...THEIRS].map((c) => ({
          ...c,
          measure: 'oneWay',
          with: ['udx', 'grpc', 'ws'].includes(c.transport) ? slow : bulk,
        })),
        {
          name: 'bare datagrams, what arrived',
          transport: 'dgram',
          measure: 'blast',
          with: { messageBytes: 4112, messages: Number.MAX_SAFE_INTEGER, seconds },
        },
      ],
      value: (/** @type {any} */ { client, server }) =>
        client.messages === undefined
          ? server.bytes / server.seconds / 1e6
          : (client.messages * client.messageBytes) / client.seconds / 1e6,
    },
    rtt64: roundTrip(64),
    rtt4k: roundTrip(4 * KIB),
    rtt8k: roundTrip(8 * KIB),
    write: oneSided('write'),
    read: oneSided('read'),
    rate: {
      title: 'messages of 64 B, pipelined',
      unit: 'messages/s',
      better: 'more',
      runs: [...OURS, ...THEIRS].map((c) => ({
        ...c,
        measure: 'oneWay',
        with: { messageBytes: 64, messages: c.transport === 'grpc' ? 50_000 : 300_000, warmUp: 50_000 },
      })),
      value: (/** @type {any} */ { client }) => client.messages / client.seconds,
    },
    qps: {
      title: 'WRITEs of 256 KiB on many queue pairs at once',
      unit: 'MB/s',
      better: 'more',
      runs: [1, 4, 16, 64].map((qps) => ({
        ...ours('worker', 'mmsg', true),
        name: `${qps} queue pair${qps === 1 ? '' : 's'}`,
        measure: 'fair',
        with: { messageBytes: 256 * KIB, seconds, qps },
      })),
      value: (/** @type {any} */ { client }) => (client.messages * client.messageBytes) / client.seconds / 1e6,
      extra: (/** @type {any} */ { client }) => ({ jain: client.jain }),
    },
    connections: {
      title: 'WRITEs of 16 KiB on up to a thousand queue pairs at once',
      unit: 'MB/s',
      better: 'more',
      runs: [1, 10, 100, 1000].map((qps) => ({
        ...ours('worker', 'mmsg', true),
        name: `${qps} queue pair${qps === 1 ? '' : 's'}`,
        measure: 'fair',
        with: { messageBytes: 16 * KIB, seconds, qps },
      })),
      value: (/** @type {any} */ { client }) => (client.messages * client.messageBytes) / client.seconds / 1e6,
      extra: (/** @type {any} */ { client }) => ({ jain: client.jain }),
    },
    loss: {
      title: 'WRITEs of 4 MiB while 0.1 % of all packets are lost',
      unit: 'MB/s',
      better: 'more',
      runs: [
        ['no packet lost', 'go-back-n', 'random=0'],
        ['go-back-N', 'go-back-n', 'random=0.001'],
        ['selective repeat', 'selective-repeat', 'random=0.001'],
      ].map(([name, recovery, loss]) => ({
        ...ours('worker', 'mmsg', true),
        name,
        measure: 'lossy',
        with: { ...bulk, recovery, loss },
      })),
      value: (/** @type {any} */ { client }) => (client.messages * client.messageBytes) / client.seconds / 1e6,
      extra: (/** @type {any} */ { client }) => ({ retransmitted: client.retransmitted }),
    },
  };
}

function latencyP50(/** @type {any} */ { client }) {
  return client.latencyUs.p50;
}

function sizeText(/** @type {number} */ bytes) {
  if (bytes >= 1024 * MIB) return `${bytes / 1024 / MIB} GiB`;
  if (bytes >= MIB) return `${bytes / MIB} MiB`;
  return bytes >= KIB ? `${bytes / KIB} KiB` : `${bytes} B`;
}

function child(/** @type {string[]} */ args) {
  const process_ = spawn(process.execPath, [CHILD, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(process_, 'exit');
  return { ...jsonLines(process_.stdout, process_.stdin), ended, kill: () => process_.kill() };
}

/** One measurement of one competitor. */
async function runOnce(/** @type {any} */ { transport, measure, options = {}, with: parameters }) {
  const all = { ...options, ...parameters };
  const server = child(['server', transport, measure, JSON.stringify(all)]);
  let client;
  try {
    const { ready } = await server.next();
    client = child(['client', transport, measure, JSON.stringify({ ...all, address: ready })]);
    const { hello } = await client.next();
    server.say({ hello });
    await server.next();
    client.say({ go: true });
    const result = await client.next();
    server.say({ stop: true });
    const served = await server.next();
    await Promise.all([client.ended, server.ended]);
    if (result.crc !== undefined && served.crc !== result.crc) throw new Error('the data that arrived is wrong');
    return { client: result, server: served };
  } finally {
    client?.kill();
    server.kill();
  }
}

/** Seconds of processor time, of both ends together, a GiB of data; NaN for what moves none. */
function cpuPerGib(/** @type {any} */ { client, server }) {
  const bytes = client.messageBytes >= MIB ? (client.messages + client.warmUp) * client.messageBytes : Number.NaN;
  return ((client.cpuSeconds + server.cpuSeconds) / bytes) * 1024 * MIB;
}

function installPeers() {
  if (existsSync(new URL('node_modules/ws', import.meta.url))) return;
  process.stderr.write('installing ws, @grpc/grpc-js and udx-native into bench/peers ...\n');
  execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: FOLDER, stdio: 'inherit' });
}

const round = (/** @type {number} */ value) =>
  value >= 999.5 ? Math.round(value).toLocaleString('en') : value.toPrecision(3);

function printTable(/** @type {any} */ { title, unit, rows }) {
  console.log(`\n${title} [${unit}]`);
  console.log(
    `${''.padEnd(30)}${['median', 'min', 'max', 'x first', 'p99', 'CPU s/GiB', ''].map((h) => h.padStart(11)).join('')}`,
  );
  for (const row of rows) {
    const cells = [row.median, row.min, row.max, row.ratio, row.p99, row.cpuSecondsPerGib];
    const extra = Object.entries(row.extra ?? {}).map(([name, value]) => ` ${name} ${round(value)}`);
    console.log(
      `${row.name.padEnd(30)}${cells.map((cell) => (cell === null || Number.isNaN(cell) ? '' : round(cell)).padStart(11)).join('')}${extra.join('')}`,
    );
  }
}

function summary(/** @type {any} */ measure, /** @type {any[][]} */ results) {
  const values = results.map((reps) => reps.map(measure.value));
  return measure.runs.map((/** @type {any} */ run, /** @type {number} */ i) => ({
    name: run.name,
    median: median(values[i]),
    min: Math.min(...values[i]),
    max: Math.max(...values[i]),
    // Within each repetition, because both had the machine in the same minute.
    ratio: median(values[i].map((value, rep) => value / values[0][rep])),
    p99: results[i][0].client.latencyUs === undefined ? null : median(results[i].map((r) => r.client.latencyUs.p99)),
    cpuSecondsPerGib: median(results[i].map(cpuPerGib)),
    ...(measure.extra !== undefined && { extra: measure.extra(results[i][Math.floor(results[i].length / 2)]) }),
  }));
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
installPeers();
const bulkBytes = Number.parseFloat(args.bulk) * (args.bulk.endsWith('GiB') ? 1024 : 1) * MIB;
const all = Object.entries(measures({ bulkBytes, seconds: Number(args.seconds) }));
const chosen = all.filter(([name]) => args.only === undefined || args.only.split(',').includes(name));
/** Parts of the names of those who take part. */
const who = args.who?.split(',');
for (const [, measure] of chosen) {
  measure.runs = measure.runs.filter(({ name }) => who === undefined || who.some((part) => name.includes(part)));
}
const document = {
  node: process.version,
  cpu: os.cpus()[0].model.trim(),
  cores: os.cpus().length,
  reps: Number(args.reps),
  load: { before: os.loadavg(), after: /** @type {number[]} */ ([]) },
  measures: /** @type {any[]} */ ([]),
};
/** @type {any[][][]} */
const results = chosen.map(([, measure]) => measure.runs.map(() => []));
for (let rep = 0; rep < document.reps; rep++) {
  for (const [m, [name, measure]] of chosen.entries()) {
    for (const [i, run] of measure.runs.entries()) {
      const result = await runOnce(run);
      results[m][i].push(result);
      process.stderr.write(
        `rep ${rep + 1}/${document.reps} ${name}: ${run.name}: ${round(measure.value(result))} ${measure.unit}\n`,
      );
    }
  }
}
for (const [m, [name, measure]] of chosen.entries()) {
  const { title, unit, better } = measure;
  document.measures.push({ name, title, unit, better, rows: summary(measure, results[m]) });
}
if (args.only === undefined || args.only.split(',').includes('memory')) {
  document.measures.push({
    name: 'memory',
    title: 'memory of an idle one, at one end',
    unit: 'KiB',
    better: 'less',
    rows: await memoryPerConnection(),
  });
}
document.load.after = os.loadavg();

console.log(
  `node ${document.node}, ${document.cores} x ${document.cpu}, load ${[document.load.before[0], document.load.after[0]].map((x) => x.toFixed(1)).join(' before, ')} after, ${document.reps} interleaved repetitions`,
);
for (const measure of document.measures) printTable(measure);
if (args.json !== undefined) writeFileSync(args.json, `${JSON.stringify(document, null, 1)}\n`);
if (args.svg !== undefined) writeFileSync(args.svg, barCharts(document));
