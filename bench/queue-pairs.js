// @ts-check
/**
 * What a packet costs the engine by how many queue pairs there are, without sockets: two NICs in one process, and batches that are handed over by hand.
 *
 *   npm run bench:queue-pairs [-- --qps 10,1000 --bytes 16384 --depth 8 --packets 40000 --reps 3]
 *
 * Processor time, of sender and receiver together: other programs on the machine change it less than they change the time on the clock. The least of
 * the repetitions; the numbers of queue pairs take turns. `--bytes 64 --depth 512 --qps 1`: short messages in a pipeline.
 */

import process from 'node:process';
import { parseArgs } from 'node:util';
import { SeededRandom } from '../build/src/core/random.js';
import { chooseCrc32 } from '../build/src/driver/crc32/crc32-choice.js';
import { IpAddress } from '../build/src/packet/address.js';
import { TxBatch } from '../build/src/port/datagram.js';
import { EventQueue } from '../build/packages/lab/src/sim/event-queue.js';
import { SimHost } from '../build/packages/lab/src/sim/sim-host.js';
import { Access } from '../build/src/verbs/access.js';
import { checkCompletion } from '../build/src/verbs/completion-queue.js';
import { RdmaDevice } from '../build/src/verbs/device.js';

/** What a batched UDP port has, and what its socket holds with a buffer of 4 MiB. */
const BATCH_SLOTS = 60;
const TRAIN_MAX = 64;
const SOCKET_PACKETS = 496;
/** Batches that arrive before the receiver answers: two, as a port reads up to 120 datagrams a turn. */
const BATCHES_A_TURN = 2;
const TURN_NS = 20_000;
/** Of short messages only every so many-th asks for a completion. */
const SIGNAL_EVERY = 32;
const SHORT_BYTES = 4096;

const { values: args } = parseArgs({
  options: {
    qps: { type: 'string', default: '10,100,1000' },
    bytes: { type: 'string', default: '16384' },
    depth: { type: 'string', default: '8' },
    packets: { type: 'string', default: '40000' },
    reps: { type: 'string', default: '3' },
  },
});
const bytes = Number(args.bytes);
const depth = Number(args.depth);
const every = bytes > SHORT_BYTES ? 1 : SIGNAL_EVERY;
const addresses = ['192.0.2.1', '192.0.2.2'].map((text) => IpAddress.parse(text));

/** Two NICs with `count` connections between them. */
async function connectedPair(/** @type {number} */ count) {
  const events = new EventQueue();
  const random = new SeededRandom(1);
  const sides = await Promise.all(
    addresses.map(async (address) => {
      const host = new SimHost({ address, events, random: random.stream(address.text) });
      const device = await RdmaDevice.over(host);
      const pd = await device.createPd();
      const queue = await device.createCq(16 * 1024);
      const region = await pd.regMr(2 * Math.max(bytes, 64), Access.REMOTE_ALL);
      const qps = [];
      for (let i = 0; i < count; i++) qps.push(await pd.createQp({ sendCq: queue, maxSendWr: 512, maxRecvWr: 64 }));
      return { address, host, queue, region, qps };
    }),
  );
  for (const [i, side] of sides.entries()) {
    const peer = sides[1 - i];
    for (const [k, qp] of side.qps.entries()) {
      await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: Access.REMOTE_ALL });
      await qp.modify({
        state: 'RTR',
        av: { address: peer.address },
        pathMtu: 4096,
        destQpn: peer.qps[k].qpn,
        rqPsn: 0,
        maxDestRdAtomic: 16,
        minRnrTimer: 1,
        inflightPackets: SOCKET_PACKETS,
      });
      await qp.modify({ state: 'RTS', sqPsn: 0, timeout: 14, retryCnt: 7, rnrRetry: 7, maxRdAtomic: 16 });
    }
  }
  return sides;
}

/** A function that moves at least so many packets. Returns what one took. */
async function workload(/** @type {number} */ count) {
  const [sender, receiver] = await connectedPair(count);
  const batch = new TxBatch(BATCH_SLOTS, addresses[0], TRAIN_MAX);
  const answers = new TxBatch(BATCH_SLOTS, addresses[1], TRAIN_MAX);
  const rx = {
    bytes: batch.slab,
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
  let now = 0;
  const deliver = (/** @type {TxBatch} */ from, /** @type {SimHost} */ to) => {
    rx.bytes = from.slab;
    let trains = 0;
    for (let slot = 0; slot < from.count; slot++) {
      rx.offset = from.payloadOffset(slot);
      rx.length = from.lengths[slot];
      rx.source = from.sources[slot];
      rx.destination = from.destinations[slot];
      rx.sourcePort = from.sourcePorts[slot];
      rx.ipId = from.ipIds[slot];
      if (rx.ipId === 0) trains++;
      to.nic.receive(rx, now);
    }
    return trains;
  };
  const write = {
    opcode: /** @type {const} */ ('RDMA_WRITE'),
    sges: [sender.region.sge(0, bytes)],
    remoteAddr: receiver.region.addr,
    rkey: receiver.region.rkey,
  };
  const unsignaled = { ...write, signaled: false };
  const byQpn = new Map(sender.qps.map((qp) => [qp.qpn, qp]));
  const post = (/** @type {import('../dist/index.js').QueuePair} */ qp, /** @type {number} */ messages) => {
    for (let k = 1; k <= messages; k++) qp.postSend(k % every === 0 ? write : unsignaled);
  };
  for (const qp of sender.qps) post(qp, depth);
  return (/** @type {number} */ packets) => {
    const before = process.cpuUsage();
    let moved = 0;
    let trains = 0;
    let acks = 0;
    while (moved < packets) {
      now += TURN_NS;
      for (let wc = sender.queue.pollOne(); wc !== undefined; wc = sender.queue.pollOne()) {
        checkCompletion(wc);
        const qp = byQpn.get(wc.qpn);
        if (qp !== undefined) post(qp, every);
      }
      for (let k = 0; k < BATCHES_A_TURN; k++) {
        batch.count = 0;
        moved += sender.host.nic.transmit(batch, now);
        trains += deliver(batch, receiver.host);
      }
      do {
        answers.count = 0;
        acks += receiver.host.nic.transmit(answers, now);
        deliver(answers, sender.host);
      } while (answers.count > 0);
    }
    const { user, system } = process.cpuUsage(before);
    return { cpuNs: ((user + system) * 1000) / moved, acks: acks / moved, packetsPerTrain: moved / trains };
  };
}

const crc32 = chooseCrc32();
const packets = Number(args.packets);
const counts = args.qps.split(',').map(Number);
const runs = [];
for (const count of counts) runs.push(await workload(count));
for (const run of runs) run(packets / 2);
const results = runs.map((run) => [run(packets)]);
for (let rep = 1; rep < Number(args.reps); rep++) for (const [i, run] of runs.entries()) results[i].push(run(packets));
console.log(`node ${process.version}, CRC-32 by ${crc32}; WRITEs of ${bytes} B, ${depth} on each queue pair`);
console.log(
  `${'queue pairs'.padEnd(14)}${['CPU ns/packet', 'x first', 'ACKs/packet', 'packets/train'].map((h) => h.padStart(15)).join('')}`,
);
const best = results.map((reps) => reps.reduce((a, b) => (b.cpuNs < a.cpuNs ? b : a)));
for (const [i, { cpuNs, acks, packetsPerTrain }] of best.entries()) {
  const cells = [cpuNs.toFixed(0), (cpuNs / best[0].cpuNs).toFixed(2), acks.toFixed(3), packetsPerTrain.toFixed(1)];
  console.log(`${String(counts[i]).padEnd(14)}${cells.map((cell) => cell.padStart(15)).join('')}`);
}
