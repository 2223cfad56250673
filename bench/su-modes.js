// @ts-check
/**
 * The three modes of sU-RDMA against each other by size, interleaved: time from a write to the reader's answer of one byte. Where one mode
 * becomes faster than the next is where its limit belongs (docs/storage-rpc.md).
 *
 *   node bench/su-modes.js [--reps 7] [--iterations 100] [--json]
 */

import os from 'node:os';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { openDevice } from '../dist/index.js';
import { SuEndpoint } from '../dist/storage-rpc/index.js';

const KIB = 1024;
const HOST = '127.0.0.1';
const SMALL_BYTES_MAX = 4056;
const SIZES = [
  256,
  1 * KIB,
  2 * KIB,
  SMALL_BYTES_MAX,
  8 * KIB,
  16 * KIB,
  32 * KIB,
  64 * KIB,
  128 * KIB,
  256 * KIB,
  512 * KIB,
];
const MIB = 1024 * KIB;

/** Limits that force a mode, and the sizes it can carry; chunks are whole messages, so that only the mode differs. */
const MODES = {
  small: { from: 0, to: SMALL_BYTES_MAX, options: { smallBytesMax: SMALL_BYTES_MAX, slotBytes: MIB, chunkBytes: MIB } },
  medium: { from: 0, to: MIB, options: { smallBytesMax: 1, slotBytes: MIB, chunkBytes: MIB } },
  large: { from: 0, to: MIB, options: { smallBytesMax: 1, slotBytes: 1, chunkBytes: MIB } },
};

const { values } = parseArgs({
  options: {
    reps: { type: 'string', default: '7' },
    iterations: { type: 'string', default: '100' },
    json: { type: 'boolean', default: false },
  },
});

const quantile = (/** @type {number[]} */ numbers, /** @type {number} */ q) =>
  numbers.toSorted((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(q * numbers.length))];

/** A connection whose reader answers every message with one byte. @param {object} options */
async function openPingPong(options) {
  const devices = [await openDevice({ address: HOST, udpPort: 0 }), await openDevice({ address: HOST, udpPort: 0 })];
  const [server, client] = [await SuEndpoint.open(devices[0], options), await SuEndpoint.open(devices[1], options)];
  const answer = Buffer.alloc(1);
  const port = await server.listen(HOST, 0, (connection) => {
    connection.onChunk = ({ endsMessage, release }) => {
      release();
      if (endsMessage) void connection.write(answer);
    };
  });
  const connection = await client.connect(HOST, port);
  /** @type {() => void} */
  let onAnswer = () => {};
  connection.onChunk = ({ release }) => {
    release();
    onAnswer();
  };
  return {
    /** @param {Uint8Array} data */
    async pingNs(data) {
      const start = process.hrtime.bigint();
      const answered = new Promise((resolve) => {
        onAnswer = () => resolve(undefined);
      });
      await connection.write(data);
      await answered;
      return Number(process.hrtime.bigint() - start);
    },
    async close() {
      await client.close();
      await server.close();
      for (const device of devices) await device.close();
    },
  };
}

const ends = Object.fromEntries(
  await Promise.all(Object.entries(MODES).map(async ([mode, { options }]) => [mode, await openPingPong(options)])),
);
const rows = [];
for (const bytes of SIZES) {
  const data = Buffer.alloc(bytes, 7);
  /** @type {Record<string, number[]>} */
  const times = {};
  for (let rep = 0; rep <= Number(values.reps); rep++) {
    for (const [mode, { to }] of Object.entries(MODES)) {
      if (bytes > to) continue;
      const mine = [];
      for (let i = 0; i < Number(values.iterations); i++) mine.push(await ends[mode].pingNs(data));
      if (rep > 0) times[mode] = [...(times[mode] ?? []), ...mine]; // The first round warms up.
    }
  }
  rows.push({
    bytes,
    modes: Object.fromEntries(
      Object.entries(times).map(([mode, ns]) => [mode, { p50Ns: quantile(ns, 0.5), p99Ns: quantile(ns, 0.99) }]),
    ),
  });
  process.stderr.write(`${bytes} bytes\n`);
}
for (const end of Object.values(ends)) await end.close();

if (values.json) console.log(JSON.stringify({ reps: Number(values.reps), rows }));
else {
  console.log(
    `node ${process.version}, ${os.cpus().length} x ${os.cpus()[0].model}; us from write to answer, p50 (p99)\n`,
  );
  console.log(
    `    bytes${Object.keys(MODES)
      .map((mode) => mode.padStart(18))
      .join('')}`,
  );
  for (const { bytes, modes } of rows) {
    const cells = Object.keys(MODES).map((mode) => {
      const time = modes[mode];
      if (time === undefined) return ''.padStart(18);
      return `${(time.p50Ns / 1e3).toFixed(0)} (${(time.p99Ns / 1e3).toFixed(0)})`.padStart(18);
    });
    console.log(`${String(bytes).padStart(9)}${cells.join('')}`);
  }
}
