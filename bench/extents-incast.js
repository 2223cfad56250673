// @ts-check
/**
 * The incast of reads around a lost node, in virtual time: six nodes of nine have what a reader combines, all of it through one port of a switch with little memory. Who reads pulls chunks, one a
 * connection at a time, as RPCs do; beside it whole pieces are pulled, and the same bytes are pushed all at once. The same seeds give the same figures on every machine.
 *
 *   node bench/extents-incast.js [--reads 100] [--mib 1] [--buffers 256KiB,512KiB,1MiB,4MiB] [--json]
 */

import process from 'node:process';
import { parseArgs } from 'node:util';
import { runScenario } from '../build/packages/lab/src/sim/scenario/run-scenario.js';
import { parseScenario } from '../build/packages/lab/src/sim/scenario/schema.js';
import { quantile } from '../build/packages/lab/src/sim/statistics.js';

/** Fragments that a lost one is made of, with RS 6+3. */
const SOURCES = 6;
const GAP_MS = 100;
/** Reads of one simulation. The flows of all of them are there from its beginning, and share what a host may have in flight. */
const READS = 5;

const { values } = parseArgs({
  options: {
    reads: { type: 'string', default: '100' },
    mib: { type: 'string', default: '1' },
    buffers: { type: 'string', default: '256KiB,512KiB,1MiB,4MiB' },
    json: { type: 'boolean', default: false },
  },
});
const bytes = Number(values.mib) * 2 ** 20;

/** What is under way from one node at a time. Twelve pieces are all that one reader asks for. */
const WAYS = /** @type {const} */ ([
  { way: 'all pushed', op: 'write', message: '256KiB', outstanding: bytes / 2 ** 18 },
  { way: 'all pulled', op: 'read', message: '256KiB', outstanding: bytes / 2 ** 18 },
  { way: '12 pieces pulled', op: 'read', message: '256KiB', outstanding: 12 / SOURCES },
  { way: 'one chunk a connection', op: 'read', message: '64KiB', outstanding: 1 },
]);

/** @param {Omit<(typeof WAYS)[number], 'way'>} flow @param {string} buffer @param {number} seed */
async function simulated(flow, buffer, seed) {
  const result = await runScenario(
    parseScenario({
      name: 'reconstruct',
      seed,
      duration: `${(READS + 20) * GAP_MS}ms`,
      sample: '10ms',
      topology: { kind: 'star', hosts: 9, rate: '25Gbps', delay: '1us' },
      nic: { timeout: 14 },
      switch: { buffer: { totalBytes: buffer } },
      flows: [
        {
          kind: 'incast',
          from: 'h0..h7',
          to: 'h8',
          fanIn: SOURCES,
          bytes,
          every: `${GAP_MS}ms`,
          until: `${READS * GAP_MS}ms`,
          ...flow,
        },
      ],
    }),
  );
  /** A read is done when its last piece is. @type {Map<number, number>} */
  const ms = new Map();
  for (const { startNs, completionNs } of result.flows)
    ms.set(startNs, Math.max(ms.get(startNs) ?? 0, (completionNs ?? Number.POSITIVE_INFINITY) / 1e6));
  return { times: [...ms.values()], ...result.summary };
}

/** @param {(typeof WAYS)[number]} way @param {string} buffer */
async function measure({ way, ...flow }, buffer) {
  /** @type {Awaited<ReturnType<typeof simulated>>[]} */
  const runs = [];
  for (let seed = 1; seed <= Number(values.reads) / READS; seed++) runs.push(await simulated(flow, buffer, seed));
  const times = runs.flatMap((run) => run.times).sort((a, b) => a - b);
  const sum = (/** @type {'droppedPackets' | 'retransmittedPackets' | 'failedFlows'} */ what) =>
    runs.reduce((total, run) => total + run[what], 0);
  return {
    buffer,
    way,
    'p50 ms': Number(quantile(times, 0.5).toFixed(2)),
    'p99 ms': Number(quantile(times, 0.99).toFixed(2)),
    'dropped a read': Math.round(sum('droppedPackets') / times.length),
    'sent again': Math.round(sum('retransmittedPackets') / times.length),
    failed: sum('failedFlows'),
  };
}

const results = [];
for (const buffer of values.buffers.split(',')) for (const way of WAYS) results.push(await measure(way, buffer));
if (values.json)
  process.stdout.write(`${JSON.stringify({ reads: Number(values.reads), bytes, results }, undefined, 2)}\n`);
else console.table(results);
