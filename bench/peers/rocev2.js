// @ts-check
/** The measurements over queue pairs, by verbs: what a program that cares for every microsecond would write. */

import { crc32 } from 'node:zlib';
import { AdaptiveSpin } from '../../build/src/core/adaptive-spin.js';
import { Access, checkCompletion, IpAddress, openDevice, warmUp } from '../../build/src/index.js';
import { jain, percentiles } from './percentiles.js';
import { phasesOf } from './phases.js';

const SERVER = '127.53.200.1';
const CLIENT = '127.53.200.2';
/** Messages of a bulk transfer in flight on each queue pair. */
const BULK_DEPTH = 8;
const SMALL_DEPTH = 512;
/** Of small messages only every so many-th asks for a completion. */
const SIGNAL_EVERY = 32;
const RECEIVES = 64;
/** Share of the time of {@link fair} before what counts: code is compiled meanwhile. */
const FAIR_WARM_UP_SHARE = 0.5;
const NS_PER_MS = 1e6;

/**
 * @typedef {object} Rocev2Options
 * @property {'inline' | 'worker'} engine
 * @property {'dgram' | 'mmsg' | 'shm'} io
 * @property {boolean} spin
 * @property {number} [warmUpMs] milliseconds of messages of the device to itself before all others
 * @property {number} messageBytes
 * @property {number} messages
 * @property {number} warmUp messages before those that count
 * @property {number} [settling] messages behind them, before the steady state
 * @property {number} seconds
 * @property {number} [qps]
 * @property {string} [recovery]
 * @property {string} [loss]
 * @property {boolean} [maps] operations are copies to mapped regions
 */

/**
 * Device, memory and queue pairs of one side. Its memory lets peers do what the measurements need: everything at the server, nothing at the client, which then sends without a copy also from
 * memory of several threads.
 * @param {string} address @param {number} access @param {Rocev2Options} options
 */
async function endpoint(address, access, options) {
  const { engine, io, spin, warmUpMs, messageBytes, qps = 1, loss } = options;
  const device = await openDevice({ address, engine, io, spin, ...(loss !== undefined && { loss }) });
  if (warmUpMs !== undefined) await warmUp(device, { durationMs: warmUpMs });
  const pd = await device.createPd();
  const cq = await device.createCq(16 * 1024);
  const recvCq = await device.createCq(1024);
  const region = await pd.regMr(2 * Math.max(messageBytes, 64), access);
  const pairs = [];
  for (let i = 0; i < qps; i++) {
    const qp = await pd.createQp({ sendCq: cq, recvCq, maxSendWr: SMALL_DEPTH, maxRecvWr: RECEIVES });
    pairs.push({ qp, psn: Math.floor(Math.random() * 2 ** 24) });
  }
  return { device, cq, recvCq, region, pairs };
}

/** @typedef {Awaited<ReturnType<typeof endpoint>>} Endpoint */

/** What the other side has to know. */
function description(/** @type {Endpoint} */ { device, region, pairs }) {
  return {
    address: device.address.text,
    receiveBudget: device.attributes.receiveBudgetPackets,
    addr: region.addr.toString(),
    rkey: region.rkey,
    pairs: pairs.map(({ qp, psn }) => ({ qpn: qp.qpn, psn, mapping: qp.offerMapping() })),
  };
}

/** @param {Endpoint} own @param {ReturnType<typeof description>} peer @param {Rocev2Options} options */
async function connectPairs(own, peer, { recovery = 'go-back-n', maps = false }) {
  for (const [i, { qp, psn }] of own.pairs.entries()) {
    await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: Access.REMOTE_ALL });
    await qp.modify({
      state: 'RTR',
      av: { address: IpAddress.parse(peer.address) },
      pathMtu: 4096,
      destQpn: peer.pairs[i].qpn,
      rqPsn: peer.pairs[i].psn,
      maxDestRdAtomic: 16,
      minRnrTimer: 1,
      recovery: /** @type {any} */ (recovery),
      inflightPackets: peer.receiveBudget,
    });
    await qp.modify({ state: 'RTS', sqPsn: psn, timeout: 14, retryCnt: 7, rnrRetry: 7, maxRdAtomic: 16 });
    const { qpn, mapping } = peer.pairs[i];
    if (maps && (mapping === undefined || !qp.mapPeer(qpn, mapping))) throw new Error('regions cannot be mapped here');
  }
}

/** Polls of the NIC, some hundred microseconds, until the event loop has a round. */
const POLLS_BETWEEN_ROUNDS = 1024;
let polls = 0;

/** A round of the event loop. */
const round = () => new Promise(setImmediate);

/** Polls the NIC. False: the event loop must have a round. */
function pollNic(/** @type {import('../../build/src/index.js').RdmaDevice} */ device) {
  if (polls < POLLS_BETWEEN_ROUNDS && device.poll()) {
    polls++;
    return true;
  }
  polls = 0;
  return false;
}

/** The next completion if it comes before the event loop must have a round. @param {import('../../build/src/index.js').CompletionQueue} cq */
function spunCompletion(cq) {
  let wc = cq.pollOne();
  while (wc === undefined && pollNic(cq.device)) wc = cq.pollOne();
  return wc === undefined ? undefined : checkCompletion(wc);
}

/** What the application spins by, in the way the NIC's thread does. */
const ownSpin = new AdaptiveSpin();

/** A program that spins with its NIC on its own thread never sleeps. */
const spinsInline = (/** @type {Rocev2Options} */ { engine, spin }) => spin && engine === 'inline';

/** Waits for a completion. In a worker the NIC works on while this thread looks; inline this thread polls it.
 * @param {import('../../build/src/index.js').CompletionQueue} cq @param {Rocev2Options} options
 */
async function completion(cq, options) {
  const { engine, spin } = options;
  if (spinsInline(options)) {
    for (;;) {
      const wc = spunCompletion(cq);
      if (wc !== undefined) return wc;
      await round();
    }
  }
  const startNs = performance.now() * NS_PER_MS;
  const endNs = spin ? startNs + ownSpin.budgetNs(startNs) : startNs;
  for (;;) {
    const wc = cq.pollOne();
    const nowNs = performance.now() * NS_PER_MS;
    if (wc !== undefined) {
      ownSpin.onGap(nowNs - startNs, nowNs);
      return checkCompletion(wc);
    }
    if (nowNs >= endNs) await cq.wait();
    else if (engine === 'inline') await round();
  }
}

/** What peers read and write is served by a NIC that does not wait to be woken. @param {import('../../build/src/index.js').RdmaDevice} device */
async function serveSpinning(device) {
  while (!device.isClosed) {
    while (pollNic(device));
    await round();
  }
}

/** What a figure is to be read with: whether anything was sent again, and why. @param {import('../../build/src/index.js').RdmaDevice} device */
function countersOf(device) {
  const { tx_retransmitted, local_ack_timeout_err } = device.counters();
  return { tx_retransmitted, local_ack_timeout_err };
}

/** @param {string} measure @param {Rocev2Options} options */
export async function serveRocev2(measure, options) {
  const { loss: _, ...lossless } = options; // One end loses for both directions.
  const own = await endpoint(SERVER, Access.REMOTE_ALL, lossless);
  const { region, recvCq, cq } = own;
  const [{ qp }] = own.pairs;
  region.bytes.fill(9);
  const postReceive = () => qp.postRecv({ sges: [region.sge(0, options.messageBytes)] });
  const echo = async () => {
    for (;;) {
      if (!spinsInline(options) || spunCompletion(recvCq) === undefined) await completion(recvCq, options);
      if (own.device.isClosed) return;
      postReceive();
      qp.postSend({ opcode: 'SEND', sges: [region.sge(0, options.messageBytes)] });
      while (cq.pollOne() !== undefined);
    }
  };
  return {
    address: description(own),
    meet: async (/** @type {any} */ peer) => {
      await connectPairs(own, peer, options);
      if (measure !== 'roundTrip') {
        if (spinsInline(options)) void serveSpinning(own.device);
        return;
      }
      for (let i = 0; i < RECEIVES; i++) postReceive();
      echo().catch(() => {}); // Ends with the device.
    },
    result: () => ({ crc: crc32(region.bytes.subarray(0, options.messageBytes)), counters: countersOf(own.device) }),
    close: () => own.device.close(),
  };
}

/** @param {string} measure @param {Rocev2Options & {address: any}} options */
export async function measureRocev2(measure, options) {
  const own = await endpoint(CLIENT, Access.LOCAL_WRITE, options);
  await connectPairs(own, options.address, options);
  own.region.bytes.fill(7);
  const run = { oneWay, roundTrip, write: oneSided, read: oneSided, fair, lossy: oneWay }[measure];
  if (run === undefined) throw new Error(`rocev2 has no ${measure}`);
  const port = own.device.portDescription;
  return {
    hello: description(own),
    run: async (/** @type {(phase: import('./phases.js').PhaseName) => void} */ begin) => ({
      ...(await run(own, options, { measure, begin })),
      port,
      counters: countersOf(own.device),
    }),
    close: () => own.device.close(),
  };
}

/** @typedef {{measure: string, begin: (phase: import('./phases.js').PhaseName) => void}} Run */

/** @param {Endpoint} own @param {Rocev2Options & {address: any}} options @param {Run} run */
async function oneWay({ cq, region, pairs, device }, options, { begin }) {
  const { messageBytes, messages, warmUp, address } = options;
  const [{ qp }] = pairs;
  const request = {
    opcode: /** @type {const} */ ('RDMA_WRITE'),
    sges: [region.sge(0, messageBytes)],
    remoteAddr: BigInt(address.addr),
    rkey: address.rkey,
  };
  const unsignaled = { ...request, signaled: false };
  const [depth, every] = messageBytes > 4096 ? [BULK_DEPTH, 1] : [SMALL_DEPTH, SIGNAL_EVERY];
  const writeAll = async (/** @type {number} */ count) => {
    let posted = 0;
    let done = 0;
    while (done < count) {
      while (posted < count && posted - done < depth) {
        posted++;
        qp.postSend(posted % every === 0 || posted === count ? request : unsignaled);
      }
      const spins = spinsInline(options);
      if (!spins) await cq.wait();
      else if (!pollNic(device)) await round();
      for (let wc = cq.pollOne(); wc !== undefined; wc = cq.pollOne()) {
        checkCompletion(wc);
        done = Math.min(count, done + every);
      }
    }
  };
  for (const { name, messages: count } of phasesOf(options)) {
    begin(name);
    await writeAll(count);
  }
  return {
    messages,
    warmUp,
    messageBytes,
    crc: crc32(region.bytes.subarray(0, messageBytes)),
  };
}

/** @param {Endpoint} own @param {Rocev2Options} options */
async function roundTrip({ cq, recvCq, region, pairs }, options) {
  const { messageBytes, messages, warmUp } = options;
  const [{ qp }] = pairs;
  const sges = [region.sge(0, messageBytes)];
  const samplesUs = [];
  for (let i = 0; i < messages + warmUp; i++) {
    qp.postRecv({ sges });
    const startMs = performance.now();
    qp.postSend({ opcode: 'SEND', sges });
    if (!spinsInline(options) || spunCompletion(recvCq) === undefined) await completion(recvCq, options);
    if (i >= warmUp) samplesUs.push((performance.now() - startMs) * 1000);
    while (cq.pollOne() !== undefined);
  }
  return { latencyUs: percentiles(samplesUs) };
}

/** @param {Endpoint} own @param {Rocev2Options & {address: any}} options @param {Run} run */
async function oneSided({ cq, region, pairs }, options, { measure }) {
  const { messageBytes, messages, warmUp, address } = options;
  const [{ qp }] = pairs;
  const request = {
    opcode: /** @type {'RDMA_WRITE'} */ (measure === 'write' ? 'RDMA_WRITE' : 'RDMA_READ'),
    sges: [region.sge(0, messageBytes)],
    remoteAddr: BigInt(address.addr),
    rkey: address.rkey,
  };
  const samplesUs = [];
  for (let i = 0; i < messages + warmUp; i++) {
    const startMs = performance.now();
    qp.postSend(request);
    if (!spinsInline(options) || spunCompletion(cq) === undefined) await completion(cq, options);
    if (i >= warmUp) samplesUs.push((performance.now() - startMs) * 1000);
  }
  return { latencyUs: percentiles(samplesUs) };
}

/** All queue pairs as fast as they can for a time. @param {Endpoint} own @param {Rocev2Options & {address: any}} options */
async function fair({ cq, region, pairs }, { messageBytes, seconds, address }) {
  const request = {
    opcode: /** @type {const} */ ('RDMA_WRITE'),
    sges: [region.sge(0, messageBytes)],
    remoteAddr: BigInt(address.addr),
    rkey: address.rkey,
  };
  const done = new Map(pairs.map(({ qp }) => [qp.qpn, 0]));
  const byQpn = new Map(pairs.map(({ qp }) => [qp.qpn, qp]));
  for (const { qp } of pairs) for (let i = 0; i < BULK_DEPTH; i++) qp.postSend(request);
  const goOn = async (/** @type {number} */ untilMs) => {
    while (performance.now() < untilMs) {
      await cq.wait();
      for (let wc = cq.pollOne(); wc !== undefined; wc = cq.pollOne()) {
        checkCompletion(wc);
        done.set(wc.qpn, /** @type {number} */ (done.get(wc.qpn)) + 1);
        byQpn.get(wc.qpn)?.postSend(request);
      }
    }
  };
  await goOn(performance.now() + FAIR_WARM_UP_SHARE * seconds * 1000);
  for (const { qp } of pairs) done.set(qp.qpn, 0);
  const startMs = performance.now();
  await goOn(startMs + seconds * 1000);
  const counts = [...done.values()];
  const messages = counts.reduce((a, b) => a + b, 0);
  return { seconds: (performance.now() - startMs) / 1000, messages, messageBytes, jain: jain(counts) };
}
