// @ts-check
/**
 * What telemetry costs a work request: the same WRITEs of one packet through two connected NICs, without I/O, in turn without telemetry, with
 * it on the side that posts the work, and with it on both. "On" is everything: T1..T6, seven histograms, waits, counters, packet headers.
 *
 * Each of the three runs in a thread of its own, as a program has it either on or off: in one thread the compiler would see both. How well it
 * compiles a thread's code is partly luck, so that several generations of threads are measured.
 *
 *   node bench/estats.js [--generations 7] [--rounds 41] [--messages 6400] [--json]
 */

import { once } from 'node:events';
import os from 'node:os';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { EventQueue } from '../build/packages/lab/src/sim/event-queue.js';
import { SimHost } from '../build/packages/lab/src/sim/sim-host.js';
import { SeededRandom } from '../build/src/core/random.js';
import { IpAddress } from '../build/src/packet/address.js';
import { TxBatch } from '../build/src/port/datagram.js';
import { Access } from '../build/src/verbs/access.js';
import { RdmaDevice } from '../build/src/verbs/device.js';
import { Estats } from '../build/src/verbs/estats/estats.js';

const MESSAGE_BYTES = 64;
const DEPTH = 64;
const WARM_UP_MESSAGES = 100_000;
const BAR_NS = 150;

const addresses = ['192.0.2.1', '192.0.2.2'].map((text) => IpAddress.parse(text));
const nowNs = () => performance.now() * 1e6;

/** Two connected NICs, the first `watched` with telemetry; packets are handed over by `run`. */
async function connectedPair(/** @type {number} */ watched) {
  const events = new EventQueue();
  const random = new SeededRandom(1);
  const sides = await Promise.all(
    addresses.map(async (address, i) => {
      const host = new SimHost({ address, events, random: random.stream(address.text) });
      const estats = i < watched ? new Estats({ nowNs, epochMs: 0, counters: host.counters }) : undefined;
      const device = await RdmaDevice.over(host, estats);
      const pd = await device.createPd();
      const cq = await device.createCq(1024);
      const qp = await pd.createQp({ sendCq: cq, maxSendWr: DEPTH });
      const region = await pd.regMr(4096, Access.REMOTE_ALL);
      return { host, cq, qp, region, address };
    }),
  );
  for (const [i, side] of sides.entries()) {
    const peer = sides[1 - i];
    await side.qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: Access.REMOTE_ALL });
    await side.qp.modify({
      state: 'RTR',
      av: { address: peer.address },
      pathMtu: 1024,
      destQpn: peer.qp.qpn,
      rqPsn: 0,
      maxDestRdAtomic: 1,
      minRnrTimer: 12,
      inflightPackets: 100_000,
    });
    await side.qp.modify({ state: 'RTS', sqPsn: 0, timeout: 0, retryCnt: 7, rnrRetry: 7, maxRdAtomic: 1 });
  }
  return { sides, request: new TxBatch(DEPTH, addresses[0]), answer: new TxBatch(DEPTH, addresses[1]) };
}

/** @type {import('../build/src/port/datagram.js').RxDatagram} */
const rx = {
  bytes: new Uint8Array(0),
  offset: 0,
  length: 0,
  source: addresses[0],
  sourcePort: 0,
  destination: addresses[1],
  destinationPort: 4791,
  ecn: 0,
  dscp: 0,
  ipId: 0,
};

function deliver(/** @type {TxBatch} */ batch, /** @type {SimHost} */ to) {
  const now = nowNs();
  for (let slot = 0; slot < batch.count; slot++) {
    rx.bytes = batch.payloadView(slot);
    rx.length = batch.lengths[slot];
    rx.source = batch.sources[slot];
    rx.destination = batch.destinations[slot];
    rx.sourcePort = batch.sourcePorts[slot];
    rx.ipId = batch.ipIds[slot];
    to.nic.receive(rx, now);
  }
}

/** Nanoseconds a work request: posted, sent, executed, acknowledged, completed and polled. */
function run(
  /** @type {Awaited<ReturnType<typeof connectedPair>>} */ { sides, request, answer },
  /** @type {number} */ count,
) {
  const [sender, receiver] = sides;
  /** @type {import('../build/src/verbs/send-work-request.js').SendWorkRequest} */
  const work = {
    opcode: 'RDMA_WRITE',
    sges: [sender.region.sge(0, MESSAGE_BYTES)],
    remoteAddr: receiver.region.addr,
    rkey: receiver.region.rkey,
  };
  const start = performance.now();
  for (let done = 0; done < count; done += DEPTH) {
    for (let n = 0; n < DEPTH; n++) sender.qp.postSend(work);
    let polled = 0;
    while (polled < DEPTH) {
      request.count = 0;
      sender.host.nic.transmit(request, nowNs());
      deliver(request, receiver.host);
      answer.count = 0;
      receiver.host.nic.transmit(answer, nowNs());
      deliver(answer, sender.host);
      polled += sender.cq.poll(DEPTH).length;
    }
  }
  return ((performance.now() - start) * 1e6) / count;
}

function clockNs() {
  const start = performance.now();
  for (let n = 0; n < 1e6; n++) nowNs();
  return ((performance.now() - start) * 1e6) / 1e6;
}

const median = (/** @type {number[]} */ numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >>> 1];

if (isMainThread) await measure();
else await serve(workerData);

/** A thread: answers each message, a number of work requests, with what one of them took. */
async function serve(/** @type {number} */ watched) {
  const pair = await connectedPair(watched);
  run(pair, WARM_UP_MESSAGES);
  run(pair, WARM_UP_MESSAGES);
  parentPort?.on('message', (count) => parentPort?.postMessage(run(pair, count)));
  parentPort?.postMessage('ready');
}

/** One generation: medians over its rounds, in which the three take turns. */
async function generation(/** @type {number} */ rounds, /** @type {number} */ messages) {
  const threads = [];
  for (const watched of [0, 1, 2]) {
    const thread = new Worker(new URL(import.meta.url), { workerData: watched });
    await once(thread, 'message');
    threads.push(thread);
  }
  /** @type {number[][]} */
  const results = [];
  for (let round = 0; round < rounds; round++) {
    /** @type {number[]} */
    const result = [];
    for (let k = 0; k < threads.length; k++) {
      const which = (round + k) % threads.length; // Each begins as often as the others.
      threads[which].postMessage(messages);
      [result[which]] = await once(threads[which], 'message');
    }
    results.push(result);
  }
  await Promise.all(threads.map((thread) => thread.terminate()));
  return {
    offNs: median(results.map(([off]) => off)),
    costNs: median(results.map(([off, one]) => one - off)),
    costBothNs: median(results.map(([off, , both]) => both - off)),
  };
}

async function measure() {
  const { values } = parseArgs({
    options: {
      generations: { type: 'string', default: '7' },
      rounds: { type: 'string', default: '41' },
      messages: { type: 'string', default: '6400' },
      json: { type: 'boolean', default: false },
    },
  });
  const generations = [];
  for (let n = 0; n < Number(values.generations); n++) {
    generations.push(await generation(Number(values.rounds), Number(values.messages)));
    process.stderr.write(`generation ${n + 1}/${values.generations}\n`);
  }
  const result = {
    node: process.version,
    cpu: os.cpus()[0].model,
    messageBytes: MESSAGE_BYTES,
    generations,
    clockNs: median(Array.from({ length: 5 }, clockNs)),
    barNs: BAR_NS,
  };
  if (values.json) console.log(JSON.stringify(result));
  else print(result);
}

function print(/** @type {any} */ { node, cpu, generations, clockNs }) {
  console.log(
    `node ${node}, ${cpu}; WRITEs of ${MESSAGE_BYTES} B; ns a work request: median of ${generations.length} generations (least to most)`,
  );
  const line = (/** @type {string} */ text, /** @type {number[]} */ all) => {
    const numbers = [median(all), Math.min(...all), Math.max(...all)].map((ns) => ns.toFixed(0));
    console.log(`${text.padEnd(66)}${numbers[0].padStart(6)}   (${numbers[1]} to ${numbers[2]})`);
  };
  const all = (/** @type {string} */ name) => generations.map((/** @type {any} */ one) => one[name]);
  line('without telemetry', all('offNs'));
  line('telemetry of the side that posts it, more', all('costNs'));
  line('telemetry of both sides, more', all('costBothNs'));
  line('one reading of the clock (a call that posts or polls makes one)', [clockNs]);
  console.log(`the bar is ${BAR_NS} ns on the side that posts it`);
}
