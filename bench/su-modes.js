// @ts-check
/**
 * The three modes of sU-RDMA against each other by size, interleaved, between two processes: time from a write to the reader's answer of one
 * byte. Where one mode becomes faster than the next is where its limit belongs (docs/storage-rpc.md).
 *
 *   node bench/su-modes.js [--reps 7] [--iterations 100] [--io auto] [--engine inline] [--json]
 */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import os from 'node:os';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openDevice } from '../build/src/index.js';
import { SuEndpoint } from '../build/src/storage-rpc/index.js';

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
    io: { type: 'string', default: 'mmsg' },
    engine: { type: 'string', default: 'inline' },
    serve: { type: 'boolean', default: false }, // What this file starts itself with, for the reader's process.
    json: { type: 'boolean', default: false },
  },
});

const quantile = (/** @type {number[]} */ numbers, /** @type {number} */ q) =>
  numbers.toSorted((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(q * numbers.length))];

const { io, engine } = /** @type {{io: 'mmsg', engine: 'inline'}} */ (values);
const openEndpointDevice = () => openDevice({ address: HOST, udpPort: 0, io, engine });

/** Readers that answer every message with one byte, one a mode; tells the parent their ports. */
async function serve() {
  const answer = Buffer.alloc(1);
  /** @type {Record<string, number>} */
  const ports = {};
  /** @type {Array<{close(): Promise<void>}>} */
  const opened = [];
  for (const [mode, { options }] of Object.entries(MODES)) {
    const device = await openEndpointDevice();
    const endpoint = await SuEndpoint.open(device, options);
    opened.unshift(endpoint, device);
    ports[mode] = await endpoint.listen(HOST, 0, (connection) => {
      connection.onChunk = ({ endsMessage, release }) => {
        release();
        if (endsMessage) void connection.write(answer);
      };
    });
  }
  process.on('disconnect', async () => {
    for (const one of opened) await one.close();
  });
  process.send?.(ports);
}

/** A connection to a reader. @param {object} options @param {number} port */
async function openPingPong(options, port) {
  const device = await openEndpointDevice();
  const client = await SuEndpoint.open(device, options);
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
      await device.close();
    },
  };
}

if (values.serve) await serve();
else await measure();

async function measure() {
  const reader = fork(fileURLToPath(import.meta.url), ['--serve', '--io', io, '--engine', engine]);
  const [ports] = await once(reader, 'message');
  /** @type {Record<string, Awaited<ReturnType<typeof openPingPong>>>} */
  const ends = {};
  for (const [mode, { options }] of Object.entries(MODES)) ends[mode] = await openPingPong(options, ports[mode]);
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
  reader.disconnect();

  if (values.json) console.log(JSON.stringify({ reps: Number(values.reps), rows }));
  else {
    console.log(
      `node ${process.version}, ${os.cpus().length} x ${os.cpus()[0].model}, ${io}, ${engine}; us from write to answer, p50 (p99)\n`,
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
}
