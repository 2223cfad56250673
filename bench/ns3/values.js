// @ts-check
/**
 * Values of HPCC's ns-3 simulator for N flows into one port: node bench/ns3/values.js PROGRAM FOLDER [--only NAME] [--write]
 *
 * PROGRAM is what build.js makes; FOLDER is for files of the runs. --write puts the values into values.json, which
 * `npm run reproduced` compares with `rocev2 sim run --like hpcc-ns3`.
 */

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { NS3_SETS } from './sets.js';
import { queueCounts, received, simulate } from './simulator.js';
import { writeStar } from './star.js';

const VALUES = new URL('./values.json', import.meta.url);
/** @param {string} program @param {import('./sets.js').Ns3Set} set @param {string} folder */
async function measure(program, { control, gbps, flows, milliseconds, bufferMib }, folder) {
  const seconds = milliseconds / 1000;
  const from = seconds / 2;
  const star = writeStar(flows, gbps, folder);
  const run = { control, gbps, ...star, seconds, bufferMib, monitorFrom: from, traced: [flows] };
  const { processorSeconds, drops } = await simulate(program, run, folder);
  const { payload, frameBytes } = received(folder, from, seconds);
  rmSync(join(folder, 'trace.bin'));
  const shares = Array.from({ length: flows }, (_, host) => payload.get(host) ?? 0);
  const total = shares.reduce((sum, share) => sum + share, 0);
  const squares = shares.reduce((sum, share) => sum + share ** 2, 0);
  const counts = queueCounts(folder, flows + 1, flows + 1);
  const samples = counts.reduce((sum, count) => sum + count, 0);
  // The queue has whole packets, of one length.
  const packetBytes = (frameBytes / total) * 1000;
  const bytesOf = (/** @type {number} */ thousands) => packetBytes * Math.ceil((1000 * thousands) / packetBytes);
  let seen = 0;
  const p99 = counts.findIndex((count) => {
    seen += count;
    return seen >= 0.99 * samples;
  });
  const pauses = readFileSync(join(folder, 'pauses.txt'), 'utf8')
    .split('\n')
    .filter((line) => line.endsWith(' 1')).length;
  const digits = (/** @type {number} */ value, /** @type {number} */ n) => Number(value.toFixed(n));
  return {
    goodputBps: Math.round((8 * total) / (seconds - from)),
    efficiency: digits((8 * frameBytes) / (seconds - from) / (gbps * 1e9), 4),
    jain: digits(total ** 2 / (flows * squares), 4),
    queueMeanBytes: Math.round(counts.reduce((sum, count, thousands) => sum + count * bytesOf(thousands), 0) / samples),
    queueP99Bytes: Math.round(bytesOf(p99)),
    pauses,
    drops,
    processorSeconds,
  };
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { only: { type: 'string' }, write: { type: 'boolean', default: false } },
});
if (positionals.length !== 2) throw new Error('usage: node bench/ns3/values.js PROGRAM FOLDER [--only NAME] [--write]');
const [program, folder] = positionals;
const { only } = values;
mkdirSync(folder, { recursive: true });
const stored = JSON.parse(readFileSync(VALUES, 'utf8'));
for (const set of NS3_SETS.filter(({ name }) => only === undefined || only === name)) {
  const { processorSeconds, ...measured } = await measure(program, set, folder);
  process.stdout.write(`${set.name} ${JSON.stringify(measured)} ${processorSeconds} s\n`);
  stored.sets[set.name] = measured;
  if (values.write) writeFileSync(VALUES, `${JSON.stringify(stored, undefined, 2)}\n`);
}
