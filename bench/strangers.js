// @ts-check
/**
 * Attacks on a server, and how honest peers fare meanwhile: one that is connected and works without pause, others that connect one after
 * another over TCP and RDMA CM. A black box: it runs against any build.
 *
 *   node bench/strangers.js [--dist dist] [--attack NAME ...] [--engine inline] [--seconds 3] [--json FILE] [--list]
 *
 * Every attack has processes of its own: server, honest peers, attacker. `won`: the attacker got what he wanted. All on loopback, where an
 * attacker may use every address; attacks "from the right port" take a raw socket, so root.
 */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { TARGET_OFFSET } from './strangers/attacks/packets.js';
import { ATTACKS } from './strangers/attacks.js';
import { Child, within } from './strangers/calls.js';
import { COMMAND_ATTACKS } from './strangers/commands.js';

const SERVER = '127.0.8.1';
const CLIENT = '127.0.8.2';
const COMERS = '127.0.8.20';
const STRANGER = '127.0.8.66';
const CM_PORT = 7471;
const HTTP = `${SERVER}:18580`;
const REGION_BYTES = 2 ** 20;
const BASELINE_MS = 1500;
/** Local ACK timeout code, 0.54 s: on a busy machine the connected peer must not fail for want of a processor. */
const TIMEOUT = 17;
const CALL_LIMIT_MS = 5000;

const { values } = parseArgs({
  options: {
    dist: { type: 'string', default: new URL('../dist', import.meta.url).pathname },
    attack: { type: 'string', multiple: true },
    engine: { type: 'string', default: 'inline' },
    seconds: { type: 'string', default: '3' },
    json: { type: 'string' },
    list: { type: 'boolean', default: false },
  },
});
const all = [...ATTACKS, ...COMMAND_ATTACKS];
if (values.list) {
  for (const { name, title } of all) console.log(`${name.padEnd(26)}${title}`);
  process.exit();
}
const wanted = values.attack ?? all.map(({ name }) => name);
for (const name of wanted)
  if (!all.some((attack) => attack.name === name)) throw new Error(`no attack is called ${name}`);
const dist = resolve(values.dist);
const api = pathToFileURL(join(dist, 'index.js')).href;
const folder = mkdtempSync(join(os.tmpdir(), 'rocev2-strangers-'));

/** @param {number[]} times @param {number} share */
function quantile(times, share) {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)];
}

/** @param {import('./strangers/attacks.js').Attack} attack @param {Child[]} children */
async function attackServer(attack, children) {
  const { recovery, rateControl } = attack;
  const http = attack.http ? HTTP : undefined;
  const pcap = attack.pcap ? join(folder, `${attack.name}.pcapng`) : undefined;
  const start = (/** @type {string} */ file, /** @type {object} */ settings) => {
    const child = new Child(file, {
      api,
      cmPort: CM_PORT,
      engine: values.engine,
      timeout: TIMEOUT,
      recovery,
      http,
      ...settings,
    });
    children.push(child);
    return child;
  };
  const server = start('./server-process.js', { address: SERVER, regionBytes: REGION_BYTES });
  const { tcpPort, udpPort } = await server.call('facts');
  const honest = start('./honest-process.js', {
    address: CLIENT,
    comers: COMERS,
    server: SERVER,
    tcpPort,
    rateControl,
    pcap,
  });
  const { qpn, region } = await honest.call('facts');
  await honest.call('start');
  await delay(BASELINE_MS / 3); // The code is warm then.
  await honest.call('take');
  await delay(BASELINE_MS);
  const baseline = await honest.call('take');
  const before = await server.call('state');

  if (attack.paused) await honest.call('pause');
  const facts = {
    ...{ server: SERVER, client: CLIENT, stranger: STRANGER, tcpPort, udpPort, cmPort: CM_PORT, http, pcap, region },
    serverQp: await server.call('victim', qpn),
    clientQp: { qpn, ...(await honest.call('victim')) },
  };
  const attacker = start('./attacker-process.js', {});
  await attacker.call('ready');
  await honest.call('take');
  const from = performance.now();
  const running = attacker.call('run', { name: attack.name, facts }).catch((/** @type {Error} */ error) => ({ error }));
  if (attack.paused) {
    await running;
    await honest.call('resume');
  }
  await delay(1000 * Number(values.seconds));
  const memory = await within(server.call('memoryAt', { offset: TARGET_OFFSET, length: 6 }), CALL_LIMIT_MS, '').catch(
    () => '',
  );
  const state = await within(server.call('state'), CALL_LIMIT_MS, undefined).catch(() => undefined);
  const after = await honest.call('take');
  const seconds = (performance.now() - from) / 1000;
  await attacker.call('stop').catch(() => {});
  const seen = await within(running, CALL_LIMIT_MS, {});
  if (seen?.error !== undefined) throw seen.error;

  const goodputRatio = after.work.bytes / seconds / (baseline.work.bytes / (BASELINE_MS / 1000));
  const { text, won } = attack.achieved({
    seen,
    state,
    before,
    after,
    memory,
    goodputRatio,
    rateBps: quantile(after.rates, 0.5),
  });
  const service = Object.entries(after.comers).map(([name, { attempts, times, failures }]) => ({
    name,
    success: times.length / attempts,
    p50: quantile(times, 0.5),
    p99: quantile(times, 0.99),
    p99Before: quantile(baseline.comers[name]?.times ?? [], 0.99),
    failures: [...new Set(failures)],
  }));
  return {
    name: attack.name,
    title: attack.title,
    from: attack.from,
    won,
    text,
    lives: server.ended ?? 'yes',
    listeners: state?.ended,
    goodputRatio,
    longestRoundMs: after.work.longestMs,
    failure: after.work.failure,
    service,
    rssMiB: [before.rssMiB, state?.rssMiB],
    counters: state && moved(before.counters, state.counters),
    clientCounters: moved(baseline.counters, after.counters),
    cm: state && moved(before.cm, state.cm),
    tcp: state?.tcp,
  };
}

/** Those that have risen. @param {Record<string, number>} before @param {Record<string, number>} after */
function moved(before, after) {
  const entries = Object.entries(after).map(([name, value]) => [name, value - (before[name] ?? 0)]);
  return Object.fromEntries(entries.filter(([, change]) => change !== 0));
}

const results = [];
const milliseconds = (/** @type {number | undefined} */ ms) => (ms === undefined ? '-' : ms.toPrecision(2));
console.log(
  `${dist}, node ${process.version}, ${os.availableParallelism()} cores, load ${os.loadavg()[0].toFixed(1)}, ${values.engine} engine`,
);
for (const attack of all) {
  if (!wanted.includes(attack.name)) continue;
  /** @type {Child[]} */
  const children = [];
  try {
    /** @type {any} */
    const result = 'runAlone' in attack ? await attack.runAlone({ dist }) : await attackServer(attack, children);
    results.push({ ...result, load: os.loadavg()[0] });
    const service = (result.service ?? []).map(
      (/** @type {any} */ { name, success, p50, p99 }) =>
        `${name} ${(100 * success).toFixed(0)} %, p50 ${milliseconds(p50)}, p99 ${milliseconds(p99)} ms`,
    );
    console.log(`\n${result.won ? 'WON ' : 'held'} ${attack.name}: ${result.text}`);
    if (result.goodputRatio !== undefined)
      console.log(
        `     lives: ${result.lives}; connected peer ${Math.round(100 * result.goodputRatio)} %${result.failure === undefined ? '' : ` FAILED: ${result.failure}`}; ` +
          `${service.join('; ')}; RSS ${result.rssMiB.map((/** @type {number | undefined} */ mib) => mib?.toFixed(0) ?? '?').join(' -> ')} MiB`,
      );
  } catch (error) {
    console.log(`\n???? ${attack.name}: ${/** @type {Error} */ (error).message}`);
    results.push({ name: attack.name, title: attack.title, error: /** @type {Error} */ (error).message });
  } finally {
    for (const child of children) child.kill();
    await delay(100);
  }
}
rmSync(folder, { recursive: true });
const won = results.filter((result) => 'won' in result && result.won).length;
console.log(`\n${results.length} attacks, ${won} won`);
if (values.json !== undefined)
  writeFileSync(values.json, `${JSON.stringify({ dist, date: new Date(), results }, null, 1)}\n`);
process.exit(0);
