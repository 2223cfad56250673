// @ts-check
/**
 * How exactly a fixed rate is kept by timers of a millisecond: `rocev2 bw write --rate` between two processes, the goodput against what the
 * rate leaves for payload. Rates and engines take turns, so that what else the machine does meets all of them.
 *
 *   node bench/pacing.js [--reps 5] [--seconds 2] [--rates 100Mbps,1Gbps,5Gbps] [--json]
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { parseRateBps } from '../build/src/core/units.js';
import { linkOverheadBytes } from '../build/src/packet/frame.js';

const MAIN = fileURLToPath(new URL('../packages/cli/bin/rocev2.js', import.meta.url));
const [SERVER, CLIENT] = ['127.51.1.1', '127.51.1.2'];
const TCP_PORT = 27190;
const MTU = 4096;
const MESSAGE_BYTES = 64 * 1024;
const ENGINES = ['inline', 'worker'];

/** Payload in a byte of the link: BTH and ICRC in every packet, RETH in the first of a message. */
const SHARE = MESSAGE_BYTES / (MESSAGE_BYTES + (MESSAGE_BYTES / MTU) * (12 + 4 + linkOverheadBytes(4)) + 16);

const { values } = parseArgs({
  options: {
    reps: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
    rates: { type: 'string', default: '100Mbps,1Gbps,5Gbps' },
    json: { type: 'boolean', default: false },
  },
});

/** Goodput of one run, bits/s. */
async function goodput(/** @type {number} */ rateBps, /** @type {string} */ engine) {
  const common = ['-p', String(TCP_PORT), '--engine', engine, '--json'];
  const server = spawn(process.execPath, [MAIN, 'bw', 'write', '--bind', SERVER, ...common]);
  await Promise.race([once(server.stderr, 'data'), delay(10_000)]);
  // An acknowledgement timeout of a second: a machine that is busy elsewhere must not look like loss.
  const options = ['-s', String(MESSAGE_BYTES), '-m', String(MTU), '-D', `${values.seconds}s`, '-u', '18'];
  const rate = ['--rate', `${rateBps}bps`];
  const client = spawn(process.execPath, [
    MAIN,
    'bw',
    'write',
    SERVER,
    '--bind',
    CLIENT,
    ...common,
    ...options,
    ...rate,
  ]);
  let text = '';
  client.stdout.on('data', (chunk) => {
    text += chunk;
  });
  await Promise.all([once(client, 'close'), once(server, 'close')]);
  return JSON.parse(text).goodputBps;
}

const cases = values.rates
  .split(',')
  .map(parseRateBps)
  .flatMap((rateBps) => ENGINES.map((engine) => ({ rateBps, engine, ratios: /** @type {number[]} */ ([]) })));
for (let rep = 0; rep < Number(values.reps); rep++) {
  for (const { rateBps, engine, ratios } of cases) ratios.push((await goodput(rateBps, engine)) / (rateBps * SHARE));
}
const rows = cases.map(({ rateBps, engine, ratios }) => {
  const sorted = [...ratios].sort((a, b) => a - b);
  return { rateBps, engine, median: sorted[sorted.length >> 1], min: sorted[0], max: sorted[sorted.length - 1] };
});
if (values.json) console.log(JSON.stringify({ node: process.version, seconds: Number(values.seconds), rows }));
else {
  console.log(`goodput over what the rate leaves for payload, ${values.reps} runs of ${values.seconds} s each`);
  console.log('rate           engine    median      min      max');
  for (const { rateBps, engine, median, min, max } of rows) {
    const cells = [median, min, max].map((ratio) => ratio.toFixed(4).padStart(9)).join('');
    console.log(`${`${rateBps / 1e6} Mb/s`.padEnd(15)}${engine.padEnd(7)}${cells}`);
  }
}
