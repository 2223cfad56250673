// @ts-check
/**
 * Live congestion control: four senders, each a process with a NIC of its own, write to one receiver through a live switch in another process,
 * whose port to the receiver is an emulated slow link with ECN marking. Without rate control and with DCQCN, one after the other: shares,
 * fairness, the queue, what was marked and dropped.
 *
 *   node bench/congestion.js [--seconds 12] [--rate 100Mbps] [--queue 600] [--ecn 50KB,600KB,0.2] [--params k=v,...] [--svg FILE] [--json]
 */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { renderLineChart } from '../build/packages/command/src/plot/line-chart.js';
import { rateControlOf } from '../build/packages/command/src/transfer/rate-control.js';
import { openLiveSwitch } from '../build/packages/lab/src/live/live-switch.js';
import { SeededRandom } from '../build/src/core/random.js';
import { formatBytes, formatRate, parseRateBps, parseSizeBytes } from '../build/src/core/units.js';
import { parseUdpEndpoint } from '../build/src/dgram-ext/udp-endpoint.js';
import { connect, listen, openDevice } from '../build/src/index.js';

const SELF = fileURLToPath(import.meta.url);
const HOST = '127.51.2.1';
const SWITCH_UDP_PORT = 27200;
const TCP_PORT = 27250;
const SENDERS = 4;
const MESSAGE_BYTES = 64 * 1024;
const IN_FLIGHT = 16;
const SAMPLE_MS = 50;
/** An event loop answers in milliseconds, where DCQCN's defaults expect microseconds: timers and steps are scaled accordingly. */
const LIVE_PARAMETERS =
  'rateTimerNs=5ms,alphaIntervalNs=5ms,cnpIntervalNs=2ms,additiveIncreaseBps=500kbps,gain=0.03,minimumRateBps=1Mbps';

/** A NIC on port `index` of the switch. */
const openNic = (/** @type {number} */ index, /** @type {number} */ rateBps) =>
  openDevice({
    address: `10.99.0.${index + 1}`,
    frame: { local: `${HOST}:0`, remote: `${HOST}:${SWITCH_UDP_PORT + index}`, mtuBytes: 4400, rateBps },
  });

/** Resolves to the next message from the parent or a child. */
async function message(/** @type {any} */ from) {
  const [received] = await once(from, 'message');
  return received;
}

const reply = (/** @type {unknown} */ what) => process.send?.(what);

async function forward(/** @type {any} */ { rateBps, queuePackets, ecn }) {
  const ports = Array.from({ length: SENDERS + 1 }, (_, i) => ({
    name: `h${i}`,
    local: parseUdpEndpoint(`${HOST}:${SWITCH_UDP_PORT + i}`),
  }));
  const random = new SeededRandom(1).stream('marks');
  const wire = await openLiveSwitch({ ports, queuePackets, ecn, random, portConfig: { h0: { rateBps } } });
  reply('ready');
  await message(process);
  /** @type {Array<{ queueBytes: number, dropped: number, marked: number }>} */
  const samples = [];
  const sampler = setInterval(() => {
    const { tx_ecn_marked: marked, tx_dropped_queue_full: dropped } = wire.counters['h0'];
    samples.push({ queueBytes: wire.snapshot().ports['h0'].egress[0].bytes, dropped, marked });
  }, SAMPLE_MS);
  await message(process);
  clearInterval(sampler);
  reply({ samples });
}

async function receive(/** @type {any} */ { rateBps }) {
  const device = await openNic(0, rateBps);
  const listener = await listen(device, {
    port: TCP_PORT,
    host: HOST,
    allowForeignGid: true, // TCP does not go through the switch.
    region: MESSAGE_BYTES,
  });
  reply('ready');
  for (let i = 0; i < SENDERS; i++) await listener.accept();
  await message(process);
  reply({ counters: device.counters() });
}

async function send(/** @type {any} */ { index, rateBps, rateControl, seconds }) {
  const device = await openNic(index, rateBps);
  const connection = await connect(device, {
    host: HOST,
    port: TCP_PORT,
    allowForeignGid: true,
    rateControl,
    timeout: 17,
  });
  reply('ready');
  await message(process);
  const data = device.allocate(MESSAGE_BYTES);
  /** Bytes written so far, at each sample. */
  const samples = [0];
  let bytes = 0;
  const sampler = setInterval(() => samples.push(bytes), SAMPLE_MS);
  const end = performance.now() + seconds * 1000;
  const streams = Array.from({ length: IN_FLIGHT }, async () => {
    while (performance.now() < end) {
      await connection.write(data);
      bytes += MESSAGE_BYTES;
    }
  });
  await Promise.all(streams);
  clearInterval(sampler);
  reply({ counters: device.counters(), samples });
}

const ROLES = { forward, receive, send };

/** Starts a process in that role and waits until it is ready. */
async function start(/** @type {keyof typeof ROLES} */ role, /** @type {object} */ settings) {
  const child = fork(SELF, ['--role', role]);
  child.send(settings);
  await message(child);
  return child;
}

async function run(/** @type {any} */ rateControl, /** @type {any} */ { rateBps, queuePackets, ecn, seconds }) {
  const wire = await start('forward', { rateBps, queuePackets, ecn });
  const receiver = await start('receive', { rateBps });
  const senders = [];
  for (let index = 1; index <= SENDERS; index++) {
    senders.push(await start('send', { index, rateBps, rateControl, seconds }));
  }
  for (const child of [wire, ...senders]) child.send('go');
  const sent = await Promise.all(senders.map(message));
  for (const child of [wire, receiver]) child.send('stop');
  const [{ samples: wireSamples }, { counters: received }] = await Promise.all([wire, receiver].map(message));
  for (const child of [...senders, receiver, wire]) child.kill();
  return evaluate(rateControl.name, sent, wireSamples, received);
}

/** Jain's index of fairness: 1 when all are equal. */
function jain(/** @type {number[]} */ values) {
  const sum = values.reduce((total, value) => total + value, 0);
  return sum ** 2 / (values.length * values.reduce((total, value) => total + value ** 2, 0));
}

/** Everything but the series is about the second half of the run. */
function evaluate(
  /** @type {string} */ cc,
  /** @type {any[]} */ sent,
  /** @type {any[]} */ wireSamples,
  /** @type {any} */ received,
) {
  const length = Math.min(wireSamples.length, ...sent.map(({ samples }) => samples.length - 1));
  const half = length >> 1;
  const sharesBps = sent.map(
    ({ samples }) => ((samples[length] - samples[half]) * 8e3) / ((length - half) * SAMPLE_MS),
  );
  const queues = wireSamples.slice(half, length).map(({ queueBytes }) => queueBytes);
  queues.sort((a, b) => a - b);
  return {
    cc,
    sharesBps,
    jain: jain(sharesBps),
    goodputBps: sharesBps.reduce((a, b) => a + b, 0),
    queueBytes: { median: queues[queues.length >> 1], max: queues[queues.length - 1] },
    marked: wireSamples[length - 1].marked - wireSamples[half].marked,
    dropped: wireSamples[length - 1].dropped - wireSamples[half].dropped,
    droppedAtStart: wireSamples[half].dropped,
    cnpsInAll: received.np_cnp_sent,
    cutsInAll: sent.reduce((total, { counters }) => total + counters.rp_cnp_handled, 0),
    series: {
      seconds: wireSamples.slice(0, length).map((_, i) => ((i + 1) * SAMPLE_MS) / 1000),
      queueBytes: wireSamples.slice(0, length).map(({ queueBytes }) => queueBytes),
      ratesBps: sent.map(({ samples }) => smoothRates(samples.slice(0, length + 1))),
    },
  };
}

/** Rates between samples ten apart: a message is completed every few milliseconds only. */
const smoothRates = (/** @type {number[]} */ bytes) =>
  bytes.slice(1).map((now, i) => {
    const from = Math.max(0, i - 9);
    return ((now - bytes[from]) * 8e3) / ((i + 1 - from) * SAMPLE_MS);
  });

function chart(/** @type {string} */ file, /** @type {any} */ { cc, series }, /** @type {string} */ subtitle) {
  const svg = renderLineChart({
    title: `Four senders under ${cc} into one slow link`,
    subtitle,
    xLabel: 'time (s)',
    x: series.seconds,
    panels: [
      {
        yLabel: 'goodput (Mb/s)',
        series: series.ratesBps.map((/** @type {number[]} */ rates, /** @type {number} */ i) => ({
          name: `sender ${i + 1}`,
          values: rates.map((rate) => rate / 1e6),
        })),
      },
      {
        yLabel: 'queue (KB)',
        series: [{ name: 'queue', values: series.queueBytes.map((/** @type {number} */ b) => b / 1e3) }],
      },
    ],
  });
  writeFileSync(file, svg);
}

const { values } = parseArgs({
  options: {
    role: { type: 'string' },
    seconds: { type: 'string', default: '12' },
    rate: { type: 'string', default: '100Mbps' },
    queue: { type: 'string', default: '600' },
    ecn: { type: 'string', default: '50KB,600KB,0.2' },
    params: { type: 'string', default: LIVE_PARAMETERS },
    svg: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});

async function compare() {
  const rateBps = parseRateBps(values.rate);
  const [kmin, kmax, pmax] = values.ecn.split(',');
  const ecn = { kind: 'red', kminBytes: parseSizeBytes(kmin), kmaxBytes: parseSizeBytes(kmax), pmax: Number(pmax) };
  const settings = { rateBps, queuePackets: Number(values.queue), ecn, seconds: Number(values.seconds) };
  const dcqcn = rateControlOf({ cc: 'dcqcn', rate: rateBps, ccParams: values.params });
  const results = [];
  for (const rateControl of [{ name: 'none' }, dcqcn]) results.push(await run(rateControl, settings));
  if (values.svg !== undefined) chart(values.svg, results[1], `link ${values.rate}, RED ${values.ecn}`);
  if (values.json) console.log(JSON.stringify({ ...settings, results }));
  else for (const result of results) print(result);
}

function print(
  /** @type {any} */ { cc, sharesBps, goodputBps, queueBytes, marked, dropped, droppedAtStart, ...result },
) {
  const shares = sharesBps.map(formatRate).join(', ');
  console.log(`${cc.padEnd(6)} ${shares}; together ${formatRate(goodputBps)}, Jain ${result.jain.toFixed(3)}`);
  console.log(
    `       queue ${formatBytes(queueBytes.median)}, at most ${formatBytes(queueBytes.max)}; ${marked} packets marked`,
  );
  console.log(
    `       ${dropped} packets dropped, ${droppedAtStart} in the first half; ${result.cnpsInAll} CNPs, ${result.cutsInAll} cuts in all`,
  );
}

if (values.role === undefined) await compare();
else await ROLES[/** @type {keyof typeof ROLES} */ (values.role)](await message(process));
