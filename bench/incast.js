// @ts-check
/**
 * Incast, live: several senders write to one host through `rocev2 switch`, whose port to that host is slower than they are. Without
 * congestion control and without PFC the buffer overflows; with PFC the senders are paused; with DCQCN neither happens.
 *
 *   node bench/incast.js [--senders 4] [--seconds 12] [--rate 1Gbps] [--json] [--svg FILE]
 *
 * A loop of software on a shared computer takes milliseconds where a network takes microseconds, and the link is 40 times slower than the
 * one DCQCN was published for: all its times are 40 times as long, all its rates 40 times as low.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { renderLineChart } from '../build/packages/command/src/plot/line-chart.js';
import { parseRateBps } from '../build/src/core/units.js';
import { connect, listen, openDevice } from '../build/src/index.js';

const CLI = fileURLToPath(new URL('../packages/cli/bin/rocev2.js', import.meta.url));
const HOST = '127.0.0.1';
const MESSAGE_BYTES = 64 * 1024;
const OUTSTANDING = 32;
const SAMPLE_MS = 100;
const WARMUP_MESSAGES = 200;
/** The senders join one after the other. */
const STAGGER_MS = 1000;
/** Left out of the shares. */
const WARMUP = 1 / 2;

const { values } = parseArgs({
  options: {
    senders: { type: 'string', default: '4' },
    seconds: { type: 'string', default: '12' },
    rate: { type: 'string', default: '1Gbps' },
    json: { type: 'boolean', default: false },
    svg: { type: 'string' },
  },
});
const senders = Number(values.senders);
const seconds = Number(values.seconds);
const rateBps = parseRateBps(values.rate);

/**
 * Times and rates of SIGCOMM'15, so much slower; an eighth of the gain's memory, so that a run of seconds shows the end; and the target kept at
 * consecutive cuts, as NICs do, since the news of a full queue comes late here.
 */
const SCALE = 40e9 / rateBps;
const DCQCN = {
  name: /** @type {const} */ ('dcqcn'),
  linkRateBps: rateBps,
  minimumRateBps: rateBps / 1000,
  gain: 1 / 32,
  alphaIntervalNs: 55e3 * SCALE,
  rateTimerNs: 55e3 * SCALE,
  cnpIntervalNs: 50e3 * SCALE,
  byteCounterBytes: 10e6,
  additiveIncreaseBps: 40e6 / SCALE,
  clampTargetRate: 0,
};
const ECN = { kind: 'red', kminBytes: '200KB', kmaxBytes: '2MB', pmax: 0.1 };
const SHARED_BYTES = 7e6;
const HEADROOM_BYTES = 4 * 2 ** 20;
const LOSSY = { buffer: { totalBytes: SHARED_BYTES } };
const LOSSLESS = {
  pfc: { priorities: [0] },
  buffer: { totalBytes: SHARED_BYTES + (senders + 1) * HEADROOM_BYTES },
  portDefaults: { headroomBytes: HEADROOM_BYTES },
};
const NONE = { name: /** @type {const} */ ('none') };

/** @type {ReadonlyArray<{name: string, cc: import('../build/src/index.js').RateControlOptions, config: object}>} */
const VARIANTS = [
  { name: 'no control', cc: NONE, config: LOSSY },
  { name: 'PFC alone', cc: NONE, config: LOSSLESS },
  { name: 'DCQCN', cc: DCQCN, config: { ...LOSSY, ecn: ECN } },
  { name: 'DCQCN and PFC', cc: DCQCN, config: { ...LOSSLESS, ecn: ECN } },
];

/** The switch as a process of its own: port `h` to the receiver, `s0`, `s1`, ... to the senders. */
async function startSwitch(/** @type {object} */ config) {
  const directory = await mkdtemp(join(tmpdir(), 'rocev2-'));
  const file = join(directory, 'switch.json');
  await writeFile(file, JSON.stringify(config));
  const names = ['h', ...Array.from({ length: senders }, (_, i) => `s${i}`)];
  const ports = names.flatMap((name) => ['--port', `${name}=${HOST}:0`]);
  const child = spawn(process.execPath, [CLI, 'switch', ...ports, '--rate', values.rate, '--json', '--config', file]);
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (text) => (stdout += text));
  child.stderr.on('data', (text) => (stderr += text));
  while (!stderr.includes('Ctrl-C')) await once(child.stderr, 'data');
  const places = Object.fromEntries([...stderr.matchAll(/switch port (\S+) on (\S+)/g)].map((match) => match.slice(1)));
  return {
    places,
    /** Ends it; what it counted. */
    stop: async () => {
      child.kill('SIGINT');
      await once(child, 'close');
      await rm(directory, { recursive: true });
      return JSON.parse(stdout);
    },
  };
}

async function run(/** @type {typeof VARIANTS[number]} */ { name, cc, config }) {
  const wire = await startSwitch(config);
  const plug = (/** @type {string} */ port, /** @type {number} */ index) =>
    openDevice({
      address: `198.18.7.${index + 1}`,
      engine: 'worker',
      spin: false,
      frame: { local: `${HOST}:0`, remote: wire.places[port], rateBps },
    });
  const receiver = await plug('h', 0);
  const listener = await listen(receiver, { host: HOST, port: 0, region: MESSAGE_BYTES, timeout: 17 });
  const devices = await Promise.all(Array.from({ length: senders }, (_, i) => plug(`s${i}`, i + 1)));
  const peers = [];
  const connections = [];
  for (const device of devices) {
    const [peer, connection] = await Promise.all([
      listener.accept(),
      connect(device, { host: HOST, port: listener.port, rateControl: cc, timeout: 17 }),
    ]);
    peers.push(peer);
    connections.push(connection);
  }
  // One after the other first, so that nobody's start-up falls into the measurement.
  for (const connection of connections) {
    for (let i = 0; i < WARMUP_MESSAGES; i++) await connection.write(Buffer.alloc(MESSAGE_BYTES));
  }
  const moved = new Array(senders).fill(0);
  const began = performance.now();
  const isOver = () => performance.now() - began > seconds * 1000;
  /** @type {number[][]} */
  const samples = [];
  const sampler = setInterval(() => samples.push([performance.now() - began, ...moved]), SAMPLE_MS);
  const flows = connections.flatMap((connection, i) =>
    Array.from({ length: OUTSTANDING }, async () => {
      const data = Buffer.alloc(MESSAGE_BYTES, i);
      await delay(i * STAGGER_MS);
      while (!isOver()) {
        await connection.write(data);
        moved[i] += MESSAGE_BYTES;
      }
    }),
  );
  await Promise.all(flows);
  clearInterval(sampler);
  const retransmitted = devices.reduce((sum, device) => sum + device.counters().tx_retransmitted, 0);
  for (const end of [...connections, ...peers, listener, ...devices, receiver]) await end.close();
  const { ports } = await wire.stop();
  return { name, ...summary(samples), retransmitted, ...switchSide(ports), series: rates(samples) };
}

/** Goodput of each sender between two samples, in bit/s. */
function rates(/** @type {number[][]} */ samples) {
  return samples.slice(1).map((sample, k) => {
    const ms = sample[0] - samples[k][0];
    return {
      timeNs: sample[0] * 1e6,
      ratesBps: sample.slice(1).map((bytes, i) => ((bytes - samples[k][i + 1]) * 8e3) / ms),
    };
  });
}

function summary(/** @type {number[][]} */ samples) {
  const from = samples.find(([ms]) => ms >= seconds * 1000 * WARMUP) ?? samples[0];
  const to = samples[samples.length - 1];
  const shares = to.slice(1).map((bytes, i) => ((bytes - from[i + 1]) * 8e3) / (to[0] - from[0]));
  const sum = shares.reduce((a, b) => a + b, 0);
  const jain = sum ** 2 / (shares.length * shares.reduce((a, b) => a + b * b, 0));
  return { goodputBps: sum, sharesBps: shares, jain };
}

function switchSide(/** @type {any[]} */ ports) {
  const total = (/** @type {(name: string) => boolean} */ isMeant) =>
    ports
      .flatMap(({ counters }) => Object.entries(counters))
      .reduce((sum, [key, n]) => sum + (isMeant(key) ? n : 0), 0);
  const receiverPort = ports.find(({ name }) => name === 'h');
  return {
    dropped: total((key) => key.startsWith('tx_dropped_')),
    marked: total((key) => key === 'tx_ecn_marked'),
    pauses: total((key) => key === 'tx_prio0_pause'),
    queueBytesMax: receiverPort.egress[0].bytesMax,
  };
}

const results = [];
for (const variant of VARIANTS) {
  const result = await run(variant);
  results.push(result);
  if (values.json) continue;
  const { goodputBps, sharesBps, jain, dropped, marked, pauses, queueBytesMax, retransmitted } = result;
  const mbps = (/** @type {number} */ bps) => (bps / 1e6).toFixed(0);
  process.stdout.write(
    `${result.name.padEnd(14)} ${mbps(goodputBps).padStart(5)} Mb/s  shares ${sharesBps.map(mbps).join(' ')}  Jain ${jain.toFixed(3)}  ` +
      `dropped ${dropped}  sent again ${retransmitted}  marked ${marked}  pauses ${pauses}  queue ${(queueBytesMax / 1000).toFixed(0)} KB\n`,
  );
}
if (values.json) process.stdout.write(`${JSON.stringify({ senders, seconds, rateBps, results })}\n`);
if (values.svg !== undefined) {
  const shown = results.filter(({ name }) => name === 'PFC alone' || name === 'DCQCN');
  const points = Math.min(...shown.map(({ series }) => series.length));
  const chart = renderLineChart({
    title: `${senders} senders into one link of ${values.rate}, live`,
    subtitle: 'goodput of each in Mb/s',
    xLabel: 'time in s',
    x: shown[0].series.slice(0, points).map(({ timeNs }) => timeNs / 1e9),
    panels: shown.map(({ name, series }) => ({
      yLabel: `${name}, Mb/s`,
      series: Array.from({ length: senders }, (_, i) => ({
        name: `sender ${i + 1}`,
        values: series.slice(0, points).map(({ ratesBps }) => ratesBps[i] / 1e6),
      })),
    })),
  });
  await writeFile(values.svg, chart);
}
