// @ts-check
/**
 * What one packet costs in each part of the stack, without I/O.
 *
 *   node bench/micro.js [--json]
 */

import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { Bench } from 'tinybench';
import { EventQueue } from '../build/packages/lab/src/sim/event-queue.js';
import { SimHost } from '../build/packages/lab/src/sim/sim-host.js';
import { Switch } from '../build/packages/lab/src/switch/switch.js';
import { SeededRandom } from '../build/src/core/random.js';
import { CRC32_RULES, chooseCrc32, packetNs } from '../build/src/driver/crc32/crc32-choice.js';
import { CompletionRing, Cqe } from '../build/src/memory/ring/completion-ring.js';
import { SendQueue, SendWqe } from '../build/src/memory/ring/work-queue.js';
import { IpAddress } from '../build/src/packet/address.js';
import { ETHERTYPE_IPV4, writeEthernet } from '../build/src/packet/ethernet.js';
import { checkIcrc, IcrcFlow, sealIcrc } from '../build/src/packet/icrc.js';
import { IP_PROTOCOL_UDP, IPV4_BYTES, writeIpv4 } from '../build/src/packet/ipv4.js';
import { RC_WRITE_MIDDLE } from '../build/src/packet/opcode.js';
import { parseRoce, RocePacket, writeBth, writeReth } from '../build/src/packet/roce.js';
import { TxBatch } from '../build/src/port/datagram.js';
import { Access } from '../build/src/verbs/access.js';
import { RdmaDevice } from '../build/src/verbs/device.js';

const MTU = 4096;
const a = IpAddress.parse('192.0.2.1');
const b = IpAddress.parse('192.0.2.2');
const crc32 = chooseCrc32();
/** @type {Record<string, number | string>} Nanoseconds for the CRC-32 of a 4 KiB packet, or why there are none. */
const crc32Ns = {};
for (const [name, candidate] of Object.entries(CRC32_RULES.candidates)) {
  try {
    const implementation = candidate();
    crc32Ns[name] = Math.min(...Array.from({ length: 50 }, () => packetNs(implementation)));
  } catch (error) {
    crc32Ns[name] = /** @type {Error} */ (error).message.split('\n')[0];
  }
}
const bench = new Bench({ time: 300, warmupTime: 100 });

// ---- codec and ICRC

const packet = new RocePacket();
const bytes = new Uint8Array(12 + MTU + 4);
writeBth(bytes, 0, RC_WRITE_MIDDLE, 0, 0x11, false, 1);
const view = bytes.subarray(0, 12 + MTU);
const flow = new IcrcFlow(a, b, 0xc000, 4791);
const ack = new Uint8Array(20);
sealIcrc(flow, bytes, 0, bytes.length, 0, view);
bench
  .add('parse WRITE_MIDDLE', () => void parseRoce(bytes, 0, bytes.length, packet))
  .add(
    'write BTH + RETH',
    () => void writeReth(bytes, writeBth(bytes, 0, RC_WRITE_MIDDLE, 0, 0x11, false, 1), 0, 0, 1, 2),
  )
  .add('ICRC seal, 20-byte ACK', () => void sealIcrc(flow, ack, 0, ack.length, 0, undefined))
  .add('ICRC seal, 4 KiB', () => void sealIcrc(flow, bytes, 0, bytes.length, 0, view))
  .add('ICRC check, 4 KiB', () => void checkIcrc(flow, bytes, 0, bytes.length, 0));

// ---- rings

const allocate = (/** @type {number} */ size) => new ArrayBuffer(size);
const sq = SendQueue.create(allocate, 128, 1, 64);
const cq = CompletionRing.create(allocate, 128);
const wqe = new SendWqe();
const cqe = new Cqe();
const sges = [{ addr: 0x7f0000000000n, length: MTU, lkey: 1 }];
let index = 0;
bench
  .add('WQE write + read', () => {
    sq.begin(index, 0, 2);
    sq.putRemote(0x7f0000000000n, 2);
    sq.putSges(sges);
    sq.read(index++, wqe);
  })
  .add('CQE push + take', () => {
    cq.push(cqe);
    cq.take(cqe);
  });

// ---- a frame through the switch

/** A switch that knows two stations, and a frame from one to the other. */
function switchPath(
  /** @type {import('../build/packages/lab/src/switch/switch.js').SwitchOptions} */ options,
  /** @type {number} */ frameBytes,
) {
  const device = new Switch(options);
  const [left, right] = [2, 4].map((first) => Uint8Array.of(first, 0, 0, 0, 0, 1));
  const frame = new Uint8Array(frameBytes);
  const send = (/** @type {number} */ port, /** @type {Uint8Array} */ from, /** @type {Uint8Array} */ to) => {
    const ip = writeEthernet(frame, 0, to, from, ETHERTYPE_IPV4);
    writeIpv4(frame, ip, a.bytes, b.bytes, IP_PROTOCOL_UDP, (26 << 2) | 2, 64, 0, frameBytes - ip - IPV4_BYTES);
    device.receive(port, frame, 0, frameBytes, 0);
    const slot = device.take(1 - port, 0);
    device.release(slot);
  };
  send(1, right, left);
  return () => send(0, left, right);
}

const LOADED = {
  ports: ['l', 'r'],
  random: new SeededRandom(1).stream('marking'),
  pfc: { priorities: [3] },
  ecn: /** @type {const} */ ({ kind: 'red', kminBytes: 5000, kmaxBytes: 200_000, pmax: 0.01 }),
  portDefaults: { rateBps: 40e9 },
};
bench
  .add('switch, 128-byte frame', switchPath({ ports: ['l', 'r'] }, 128))
  .add('switch with shared buffer, PFC, ECN, 128-byte frame', switchPath(LOADED, 128))
  .add('switch with shared buffer, PFC, ECN, 4 KiB frame', switchPath(LOADED, 4178));

// ---- a packet through requester and responder: two NICs, packets handed over by hand

/** Two connected NICs; `step` moves one WRITE_MIDDLE from one to the other. */
async function connectedPair() {
  const events = new EventQueue();
  const random = new SeededRandom(1);
  const sides = await Promise.all(
    [a, b].map(async (address) => {
      const host = new SimHost({ address, events, random: random.stream(address.text) });
      const device = await RdmaDevice.over(host);
      const pd = await device.createPd();
      const queue = await device.createCq(1024);
      const qp = await pd.createQp({ sendCq: queue });
      const region = await pd.regMr(1 << 22, Access.REMOTE_ALL);
      return { host, device, queue, qp, region, address };
    }),
  );
  for (const [i, side] of sides.entries()) {
    const peer = sides[1 - i];
    await side.qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: Access.REMOTE_ALL });
    await side.qp.modify({
      state: 'RTR',
      av: { address: peer.address },
      pathMtu: MTU,
      destQpn: peer.qp.qpn,
      rqPsn: 0,
      maxDestRdAtomic: 1,
      minRnrTimer: 12,
      inflightPackets: 100_000,
    });
    await side.qp.modify({ state: 'RTS', sqPsn: 0, timeout: 0, retryCnt: 7, rnrRetry: 7, maxRdAtomic: 1 });
  }
  return sides;
}

const [sender, receiver] = await connectedPair();
const txBatch = new TxBatch(64, a);
const ackBatch = new TxBatch(64, b);
/** @type {import('../build/src/port/datagram.js').RxDatagram} */
const rx = {
  bytes: txBatch.slab,
  offset: 0,
  length: 0,
  source: a,
  sourcePort: 0,
  destination: b,
  destinationPort: 4791,
  ecn: 0,
  dscp: 0,
  ipId: 0,
};

function deliver(/** @type {TxBatch} */ batch, /** @type {SimHost} */ to) {
  for (let slot = 0; slot < batch.count; slot++) {
    rx.bytes = batch.payloadView(slot);
    rx.length = batch.lengths[slot];
    rx.source = batch.sources[slot];
    rx.destination = batch.destinations[slot];
    rx.sourcePort = batch.sourcePorts[slot];
    rx.ipId = batch.ipIds[slot];
    to.nic.receive(rx, 0);
  }
}

function post() {
  sender.qp.postSend({
    opcode: 'RDMA_WRITE',
    sges: [sender.region.sge()],
    remoteAddr: receiver.region.addr,
    rkey: receiver.region.rkey,
  });
}

/** Requester and responder, timed apart over the same packets. */
function engineCosts(/** @type {number} */ packets) {
  let requesterNs = 0;
  let responderNs = 0;
  let moved = 0;
  while (moved < packets) {
    if (sender.qp.sendRoom > 8) post();
    for (let wc = sender.queue.pollOne(); wc !== undefined; wc = sender.queue.pollOne());
    txBatch.count = 0;
    const t0 = performance.now();
    moved += sender.host.nic.transmit(txBatch, 0);
    const t1 = performance.now();
    deliver(txBatch, receiver.host);
    const t2 = performance.now();
    requesterNs += (t1 - t0) * 1e6;
    responderNs += (t2 - t1) * 1e6;
    ackBatch.count = 0;
    receiver.host.nic.transmit(ackBatch, 0);
    deliver(ackBatch, sender.host);
  }
  return { requesterNs: requesterNs / moved, responderNs: responderNs / moved };
}

engineCosts(50_000);
const runs = Array.from({ length: 5 }, () => engineCosts(50_000));
const median = (/** @type {number[]} */ values) => [...values].sort((x, y) => x - y)[values.length >> 1];

await bench.run();
const rows = bench.tasks.map((task) => {
  const result = /** @type {any} */ (task.result);
  return { name: task.name, medianNs: result.latency.p50 * 1e6, meanNs: result.latency.mean * 1e6 };
});
const engine = {
  requesterNs: median(runs.map((run) => run.requesterNs)),
  responderNs: median(runs.map((run) => run.responderNs)),
};
if (process.argv.includes('--json'))
  console.log(JSON.stringify({ node: process.version, crc32, crc32Ns, rows, engine }));
else {
  console.log(
    `node ${process.version}, CRC-32 by ${crc32}; nanoseconds, mean of tinybench (includes about 30 ns of its own clock)`,
  );
  for (const [name, ns] of Object.entries(crc32Ns))
    console.log(`CRC-32, 4 KiB, ${name.padEnd(15)}${typeof ns === 'number' ? ns.toFixed(0).padStart(4) : ` ${ns}`}`);
  for (const { name, meanNs } of rows) console.log(`${name.padEnd(26)}${meanNs.toFixed(0).padStart(7)}`);
  console.log(
    '\none 4 KiB WRITE packet, median of 5 runs of 50,000, ICRC made and checked, copied out of and into memory',
  );
  console.log(`${'requester'.padEnd(26)}${engine.requesterNs.toFixed(0).padStart(7)}`);
  console.log(`${'responder'.padEnd(26)}${engine.responderNs.toFixed(0).padStart(7)}`);
}
