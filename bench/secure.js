// @ts-check
/**
 * What protection costs: processor time and garbage to seal and to open one packet, by each cipher that can be had; and the rate of WRITEs of 1 MiB between two devices of this
 * process, plain and protected, with native calls and without. The ways take turns.
 *
 *   node bench/secure.js [--reps 5] [--seconds 0.5] [--json]
 */

import { Session } from 'node:inspector/promises';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { CIPHER_RULES, CIPHER_VARIABLE } from '../build/src/driver/cipher/cipher-choice.js';
import { connect, listen, openDevice } from '../build/src/index.js';

const { values } = parseArgs({
  options: {
    reps: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '0.5' },
    json: { type: 'boolean', default: false },
  },
});
const reps = Number(values.reps);
const limitMs = Number(values.seconds) * 1000;
const median = (/** @type {number[]} */ list) => [...list].sort((x, y) => x - y)[list.length >> 1];

const CLEAR_BYTES = 36;
const CALLS = 20_000;

/** Microseconds of processor time for one call. */
function cpuUs(/** @type {() => void} */ call) {
  const before = process.cpuUsage();
  for (let n = 0; n < CALLS; n++) call();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / CALLS;
}

/** Bytes that one call allocates, as V8's sampling heap profiler counts them, also those that are collected at once. */
async function allocatedBytes(/** @type {() => void} */ call) {
  const session = new Session();
  session.connect();
  await session.post('HeapProfiler.startSampling', {
    samplingInterval: 4096,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  });
  for (let n = 0; n < CALLS; n++) call();
  const { profile } = await session.post('HeapProfiler.stopSampling');
  session.disconnect();
  const sum = (/** @type {any} */ node) =>
    node.children.reduce((/** @type {number} */ bytes, /** @type {any} */ child) => bytes + sum(child), node.selfSize);
  return sum(profile.head) / CALLS;
}

/** What can be had here. */
const CIPHERS = Object.entries(CIPHER_RULES.candidates).flatMap(([name, candidate]) => {
  try {
    return [{ name, make: candidate().make }];
  } catch (error) {
    console.error(`${name}: ${/** @type {Error} */ (error).message.split('\n')[0]}`);
    return [];
  }
});

/** @type {Record<string, {seal: number[], open: number[], bytes: number}>} */
const packets = {};
for (let rep = 0; rep < reps; rep++) {
  for (const { name, make } of CIPHERS) {
    for (const bytes of [64, 1024, 4096]) {
      const cipher = make(new Uint8Array(16).fill(1));
      const text = new Uint8Array(new ArrayBuffer(bytes));
      const packet = new Uint8Array(new ArrayBuffer(CLEAR_BYTES + bytes + 16));
      const key = `${name}, ${bytes} B`;
      packets[key] ??= { seal: [], open: [], bytes: 0 };
      packets[key].seal.push(cpuUs(() => cipher.seal(text, 0, bytes, packet, 0, CLEAR_BYTES)));
      packets[key].open.push(cpuUs(() => void cipher.open(packet, 0, CLEAR_BYTES, bytes, text, 0)));
      if (rep === reps - 1) {
        packets[key].bytes = await allocatedBytes(() => {
          cipher.seal(text, 0, bytes, packet, 0, CLEAR_BYTES);
          cipher.open(packet, 0, CLEAR_BYTES, bytes, text, 0);
        });
      }
      cipher.close();
    }
  }
}

const MESSAGE_BYTES = 1 << 20;
const IN_FLIGHT = 4;
const psk = { identity: 'bench', key: new Uint8Array(32).fill(3) };

/** @type {Record<string, {options: object, cipher?: string}>} */
const WAYS = { plain: { options: { io: 'mmsg' } } };
for (const { name } of CIPHERS) {
  if (name !== 'node:crypto') WAYS[`protected, ${name}`] = { options: { io: 'mmsg', secure: { psk } }, cipher: name };
}
WAYS['plain, no native calls'] = { options: { native: 'off' } };
WAYS['protected, no native calls'] = { options: { native: 'off', secure: { psk } } };

/** A connection of two devices of this process. */
async function open(/** @type {(typeof WAYS)[string]} */ { options, cipher }) {
  const address = '127.0.0.1';
  process.env[CIPHER_VARIABLE] = cipher ?? '';
  const server = await openDevice({ address, udpPort: 0, ...options });
  const client = await openDevice({ address, udpPort: 0, ...options });
  const listener = await listen(server, { port: 0, region: MESSAGE_BYTES });
  const [, connection] = await Promise.all([
    listener.accept(),
    connect(client, { host: address, port: listener.port }),
  ]);
  const memory = await connection.register(MESSAGE_BYTES);
  const close = async () => {
    await client.close();
    await server.close();
  };
  return { connection, memory, close };
}

/** Gb/s, and microseconds of processor time of both ends for 4 KiB. */
async function measure(/** @type {Awaited<ReturnType<typeof open>>} */ { connection, memory }) {
  const before = process.cpuUsage();
  const startMs = performance.now();
  let done = 0;
  const lane = async () => {
    while (performance.now() - startMs < limitMs) {
      await connection.write(memory);
      done++;
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
  const seconds = (performance.now() - startMs) / 1000;
  const { user, system } = process.cpuUsage(before);
  const pages = (done * MESSAGE_BYTES) / 4096;
  return { gbps: (done * MESSAGE_BYTES * 8) / seconds / 1e9, cpuUs: (user + system) / pages };
}

const ends = new Map();
for (const [name, way] of Object.entries(WAYS)) ends.set(name, await open(way));
/** @type {Record<string, {gbps: number[], cpuUs: number[]}>} */
const rates = Object.fromEntries(Object.keys(WAYS).map((name) => [name, { gbps: [], cpuUs: [] }]));
for (let rep = -1; rep < reps; rep++) {
  for (const [name, end] of ends) {
    const { gbps, cpuUs } = await measure(end);
    if (rep < 0) continue; // Compiled by now.
    rates[name].gbps.push(gbps);
    rates[name].cpuUs.push(cpuUs);
  }
}
for (const end of ends.values()) await end.close();

const ofPackets = Object.entries(packets).map(([packet, { seal, open, bytes }]) => ({
  packet,
  sealUs: median(seal),
  openUs: median(open),
  allocatedBytes: bytes,
}));
const ofRates = Object.entries(rates).map(([way, { gbps, cpuUs }]) => ({
  way,
  gbps: median(gbps),
  cpuUs: median(cpuUs),
  ofPlain: median(
    gbps.map((rate, i) => rate / rates[way.includes('native') ? 'plain, no native calls' : 'plain'].gbps[i]),
  ),
}));
if (values.json) console.log(JSON.stringify({ packets: ofPackets, rates: ofRates }));
else {
  for (const { packet, sealUs, openUs, allocatedBytes } of ofPackets) {
    console.log(
      `${packet.padEnd(20)} seal ${sealUs.toFixed(2)} us  open ${openUs.toFixed(2)} us  both allocate ${allocatedBytes.toFixed(1)} B`,
    );
  }
  for (const { way, gbps, cpuUs, ofPlain } of ofRates) {
    console.log(
      `${way.padEnd(28)} ${gbps.toFixed(2)} Gb/s  ${cpuUs.toFixed(2)} us for 4 KiB  ${ofPlain.toFixed(2)} of plain`,
    );
  }
}
