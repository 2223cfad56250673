// @ts-check
/** The honest peers: one that is connected and works without pause, and others that connect one after another, over TCP and RDMA CM. */

import { setTimeout as delay } from 'node:timers/promises';
import { answerCalls, within } from './calls.js';

const settings = JSON.parse(process.argv[2]);
const { ConnectionManager, connect, openDevice } = await import(settings.api);

const SMALL_BYTES = 1024;
const LARGE_BYTES = 64 * 1024;
const MESSAGE_BYTES = 32 * 1024;
/** A peer that is not connected by then goes away: nobody waits longer for a service. */
const PATIENCE_MS = 3000;
/** Patience with one that still waits when the time of the attack is over. */
const PENDING_MS = 1000;
const BETWEEN_CONNECTS_MS = 10;
/** The connected peer leaves the processor to others. */
const BETWEEN_ROUNDS_MS = 2;

const { engine } = settings;
const residentDevice = await openDevice({ address: settings.address, engine, pcap: settings.pcap });
const target = { host: settings.server, port: settings.tcpPort };
const resident = await connect(residentDevice, {
  ...target,
  recovery: settings.recovery,
  rateControl: settings.rateControl,
  timeout: settings.timeout,
});

const work = { bytes: 0, rounds: 0, failure: undefined, longestMs: 0 };
let paused = false;
let atRest = () => {};
let goOn = () => {};

async function workOn() {
  const small = residentDevice.allocate(SMALL_BYTES);
  const large = residentDevice.allocate(LARGE_BYTES);
  const message = Buffer.alloc(MESSAGE_BYTES);
  for (let round = 1; ; round++) {
    if (paused) {
      atRest();
      await new Promise((resolve) => {
        goOn = () => resolve(undefined);
      });
    }
    const start = performance.now();
    for (const data of [small, large]) {
      data.fill(round & 0xff);
      data.writeUInt32LE(round, 0);
      await resident.write(data, 0);
      const back = await resident.read(data.length, 0);
      if (!data.equals(back)) throw new Error('what was written and acknowledged is not there');
    }
    message.fill(round & 0xff);
    message.write('honest');
    await resident.send(message);
    const echo = await resident.receive();
    if (!message.equals(echo.data)) throw new Error('the answer is not the message');
    work.bytes += 2 * (SMALL_BYTES + LARGE_BYTES + MESSAGE_BYTES);
    work.rounds++;
    work.longestMs = Math.max(work.longestMs, performance.now() - start);
    await delay(BETWEEN_ROUNDS_MS);
  }
}

/** @typedef {{times: number[], failures: string[], pendingSince: number | undefined}} Tries */

/** @type {Record<string, Tries>} */
const comers = {};

/** Tries again and again; `attempt` resolves to the milliseconds it took. @param {string} name @param {() => Promise<number>} attempt */
async function keepTrying(name, attempt) {
  comers[name] = { times: [], failures: [], pendingSince: undefined };
  for (;;) {
    const mine = comers[name];
    mine.pendingSince = performance.now();
    await attempt().then(
      (tookMs) => mine.times.push(tookMs),
      (error) => mine.failures.push(String(error.message).slice(0, 160)),
    );
    mine.pendingSince = undefined;
    await delay(BETWEEN_CONNECTS_MS);
  }
}

/** What came of the tries since the last time; one that has been waiting for long has failed. */
function takeTries() {
  return Object.fromEntries(
    Object.entries(comers).map(([name, { times, failures, pendingSince = Infinity }]) => {
      const waits = performance.now() - pendingSince > PENDING_MS ? [`waits for more than ${PENDING_MS} ms`] : [];
      const taken = { times: times.splice(0), failures: [...failures.splice(0), ...waits] };
      return [name, { ...taken, attempts: taken.times.length + taken.failures.length }];
    }),
  );
}

/** @param {any} device @param {object} options */
async function comeAndGo(device, options) {
  const message = Buffer.from('honest');
  const start = performance.now();
  const connecting = connect(device, options);
  const connection = await within(connecting, PATIENCE_MS, undefined);
  if (connection === undefined) {
    connecting.then((/** @type {any} */ late) => late.close()).catch(() => {});
    throw new Error(`not connected within ${PATIENCE_MS} ms`);
  }
  const tookMs = performance.now() - start;
  await connection.send(message);
  if (!(await connection.receive()).data.equals(message)) throw new Error('the answer is not the message');
  await connection.close();
  return tookMs;
}

/** How /metrics answers a scraper. @param {string} url */
async function scrape(url) {
  const start = performance.now();
  const response = await fetch(url, { signal: AbortSignal.timeout(PATIENCE_MS) });
  if (response.status !== 200) throw new Error(`status ${response.status}`);
  await response.text();
  return performance.now() - start;
}

const comerDevice = await openDevice({ address: settings.comers, engine });
const manager = await ConnectionManager.open(comerDevice);

/** Of the connected peer, since the last time. @type {number[]} */
const rates = [];
async function sampleRate() {
  for (; work.failure === undefined; await delay(50)) rates.push((await resident.qp.query()).rateBps);
}

answerCalls({
  start() {
    if (settings.rateControl !== undefined) void sampleRate().catch(() => {});
    void workOn().catch((error) => {
      work.failure ??= `${error.code ?? ''} ${error.message}`.trim().slice(0, 200);
      atRest();
    });
    if (settings.http !== undefined) void keepTrying('http', () => scrape(`http://${settings.http}/metrics`));
    else {
      void keepTrying('tcp', () => comeAndGo(comerDevice, { ...target, recovery: settings.recovery }));
      const throughManager = { host: settings.server, port: settings.cmPort, manager };
      void keepTrying('cm', () => comeAndGo(comerDevice, throughManager));
    }
  },
  facts: () => ({ qpn: resident.qp.qpn, region: { addr: String(resident.remote.addr), rkey: resident.remote.rkey } }),
  async victim() {
    const { sqPsn, rqPsn, sourcePort } = await resident.qp.query();
    return { sqPsn, rqPsn, sourcePort };
  },
  async pause() {
    paused = true;
    const rest = new Promise((resolve) => {
      atRest = () => resolve(undefined);
    });
    if (work.failure === undefined) await rest;
  },
  resume() {
    paused = false;
    goOn();
  },
  /** What has happened since the last time. */
  take() {
    const taken = {
      work: { ...work },
      rates: rates.splice(0),
      comers: takeTries(),
      counters: residentDevice.counters(),
    };
    work.bytes = 0;
    work.rounds = 0;
    work.longestMs = 0;
    return taken;
  },
});
