// @ts-check
/**
 * What attackers on the path cost an honest pair: two processes whose devices have frame ports, connected through an attacker in this process that sees every frame
 * (`secure-attacks/on-path.js`). The client WRITEs without pause under DCQCN. Slices with an attack and without take turns; the share is the median of neighbours.
 * `--plain` does the same to packets that are not protected.
 *
 *   node bench/secure-attacks.js [--reps 5] [--slice 1] [--rate 50e6] [--pps 500] [--attack NAME] [--plain] [--json]
 */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { connect, listen, openDevice } from '../build/src/index.js';
import { ATTACKS, OnPath } from './secure-attacks/on-path.js';

const { values } = parseArgs({
  options: {
    reps: { type: 'string', default: '5' },
    slice: { type: 'string', default: '1' },
    rate: { type: 'string', default: '50e6' },
    pps: { type: 'string', default: '500' },
    plain: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    attack: { type: 'string', default: '' },
    end: { type: 'string' },
  },
});
/** @typedef {import('./secure-attacks/on-path.js').Attack} Attack */

const MESSAGE_BYTES = 64 * 1024;
const SECRET = { identity: 'honest', key: new Uint8Array(32).fill(7) };
const HOST = '127.0.0.1';

// ---- the honest pair

async function honest(/** @type {any} */ { end, frame, secure, port, rateBps }) {
  const address = end === 'b' ? '10.79.0.2' : '10.79.0.1';
  const device = await openDevice({ address, frame, ...(secure && { secure: { psk: SECRET } }) });
  const work = { bytes: 0, failure: '' };
  process.on('message', () => {
    const counters = Object.fromEntries(Object.entries(device.counters()).filter(([, value]) => value > 0));
    process.send?.({ ...work, counters });
  });
  process.on('disconnect', () => process.exit());
  if (end === 'b') {
    const listener = await listen(device, { port: 0, host: HOST, region: MESSAGE_BYTES, allowForeignGid: true });
    process.send?.({ port: listener.port });
    await listener.accept();
    return;
  }
  const rateControl = /** @type {const} */ ({ name: 'dcqcn', linkRateBps: rateBps });
  const connection = await connect(device, { host: HOST, port, rateControl, allowForeignGid: true });
  const memory = await connection.register(MESSAGE_BYTES);
  const { addr, rkey } = /** @type {import('../build/src/index.js').RemoteRegion} */ (connection.agreement.region);
  process.send?.({ addr: String(addr), rkey });
  const lane = async () => {
    for (;;) {
      await connection.write(memory);
      work.bytes += MESSAGE_BYTES;
    }
  };
  await Promise.all([lane(), lane(), lane()]).catch((error) => {
    work.failure = error.message;
  });
}

// ---- the attacker

/** An honest pair at work, and the attacker between its ends. */
async function openPair(/** @type {boolean} */ secure) {
  const path = await OnPath.open();
  const start = (/** @type {'a' | 'b'} */ end, more = {}) => {
    const options = { end, frame: path.frameOf(end), secure, rateBps: Number(values.rate), ...more };
    return fork(process.argv[1], ['--end', JSON.stringify(options)]);
  };
  const b = start('b');
  const [{ port }] = await once(b, 'message');
  const a = start('a', { port });
  const [memory] = await once(a, 'message');
  path.known = { rkey: memory.rkey, addr: BigInt(memory.addr) };
  const ask = async (/** @type {import('node:child_process').ChildProcess} */ child) => {
    child.send('tell');
    const [told] = await once(child, 'message');
    return told;
  };
  const close = () => {
    for (const child of [a, b]) child.disconnect();
    path.close();
  };
  return { path, ask: () => Promise.all([ask(a), ask(b)]), close };
}

/** What became of strikes. */
const TOLD = /^secure_drop|^rx_drop|rp_cnp_handled|unsent_response|reorder_conflicts/;

/** One slice: Mb/s, strikes, and what the counters of both ends say of them. */
async function slice(
  /** @type {Awaited<ReturnType<typeof openPair>>} */ { path, ask },
  /** @type {Attack | undefined} */ attack,
) {
  const before = await ask();
  const began = performance.now();
  const seconds = () => (performance.now() - began) / 1000;
  let made = 0;
  path.due = 0;
  path.struck = 0;
  path.attack = attack;
  while (seconds() < Number(values.slice)) {
    const due = seconds() * Number(values.pps);
    path.due += due - made;
    made = due;
    if (attack?.inject !== undefined) for (; path.due >= 1; path.due--) attack.inject(path);
    await delay(2);
  }
  path.attack = undefined;
  const lasted = seconds();
  const after = await ask();
  /** @type {Record<string, number>} */
  const drops = {};
  for (const side of [0, 1]) {
    for (const [name, count] of Object.entries(after[side].counters)) {
      const moved = Number(count) - (before[side].counters[name] ?? 0);
      if (TOLD.test(name) && moved > 0) drops[name] = (drops[name] ?? 0) + moved;
    }
  }
  const mbps = ((after[0].bytes - before[0].bytes) * 8) / lasted / 1e6;
  return { mbps, struck: path.struck, drops, failure: after[0].failure };
}

/** Slices with the attack and without, in turns. */
async function measure(/** @type {Awaited<ReturnType<typeof openPair>>} */ pair, /** @type {Attack} */ attack) {
  /** @type {Record<string, number>} */
  const drops = {};
  const result = { attack: attack.name, does: attack.does, struck: 0, mbps: 0, share: 0, drops, failure: '' };
  const shares = [];
  const rates = [];
  for (let rep = 0; rep < Number(values.reps) && result.failure === ''; rep++) {
    const order = rep % 2 === 0 ? [undefined, attack] : [attack, undefined];
    const slices = [await slice(pair, order[0]), await slice(pair, order[1])];
    const attacked = slices[order.indexOf(attack)];
    shares.push(attacked.mbps / slices[order.indexOf(undefined)].mbps);
    rates.push(attacked.mbps);
    result.struck += attacked.struck;
    for (const { drops: told } of slices)
      for (const [name, count] of Object.entries(told)) drops[name] = (drops[name] ?? 0) + count;
    result.failure = slices.find(({ failure }) => failure !== '')?.failure ?? '';
  }
  return { ...result, mbps: median(rates), share: median(shares) };
}

/** One protected pair survives all attacks; of plain ones, each attack gets its own. */
async function attackAll() {
  const rows = [];
  let pair = await openPair(!values.plain);
  await slice(pair, undefined); // Compiled by now.
  for (const attack of ATTACKS.filter(({ name }) => name.includes(values.attack))) {
    rows.push(await measure(pair, attack));
    if (!values.plain) continue;
    pair.close();
    pair = await openPair(false);
    await slice(pair, undefined);
  }
  pair.close();
  return rows;
}

const median = (/** @type {number[]} */ list) => [...list].sort((x, y) => x - y)[list.length >> 1];

if (values.end !== undefined) await honest(JSON.parse(values.end));
else {
  const rows = await attackAll();
  if (values.json) console.log(JSON.stringify(rows));
  else {
    for (const { attack, struck, mbps, share, drops, failure } of rows) {
      const told = Object.entries(drops).map(([name, count]) => `${name} ${count}`);
      const ended = failure === '' ? [] : [`ended: ${failure.split(' (')[0]}`];
      console.log(
        `${attack.padEnd(15)} ${String(struck).padStart(6)} packets  ${mbps.toFixed(0).padStart(5)} Mb/s  ` +
          `${share.toFixed(3)} of before  ${[...told, ...ended].join(', ')}`,
      );
    }
  }
}
