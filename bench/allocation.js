// @ts-check
/**
 * Bytes allocated per packet on the steady path, by whose code allocates: two processes move WRITEs, V8's sampling heap profiler counts
 * everything allocated meanwhile, also what was collected at once.
 *
 *   node bench/allocation.js [--messages 200] [--json]
 */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Session } from 'node:inspector/promises';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Access, checkCompletion, IpAddress, openDevice } from '../build/src/index.js';

const SELF = fileURLToPath(import.meta.url);
const DIST = new URL('../dist/', import.meta.url).href;
const MESSAGE_BYTES = 4 * 1024 * 1024;
const WARM_UP_MESSAGES = 50;
const SAMPLING_INTERVAL_BYTES = 4096;
const IN_FLIGHT = 8;

/**
 * The profile's allocations, summed by file. What V8's builtins allocate (a view, a number) is charged to the code that called them.
 */
function sumByFile(/** @type {any} */ node, /** @type {Map<string, number>} */ sums, caller = 'V8') {
  const { url, functionName } = node.callFrame;
  const name = url.startsWith(DIST) ? `${url.slice(DIST.length)} ${functionName}` : url;
  const charged = url === '' ? caller : name;
  sums.set(charged, (sums.get(charged) ?? 0) + node.selfSize);
  for (const child of node.children) sumByFile(child, sums, charged);
  return sums;
}

async function profiled(/** @type {() => Promise<number>} */ work) {
  const session = new Session();
  session.connect();
  await session.post('HeapProfiler.startSampling', {
    samplingInterval: SAMPLING_INTERVAL_BYTES,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  });
  const packets = await work();
  const { profile } = await session.post('HeapProfiler.stopSampling');
  session.disconnect();
  const sums = [...sumByFile(profile.head, new Map())].filter(([, bytes]) => bytes > 0);
  const own = sums.filter(([file]) => !file.startsWith('node:') && !file.startsWith('V8'));
  const total = (/** @type {Array<[string, number]>} */ list) => list.reduce((sum, [, bytes]) => sum + bytes, 0);
  return {
    packets,
    ownBytesPerPacket: total(own) / packets,
    nodeBytesPerPacket: (total(sums) - total(own)) / packets,
    top: sums
      .sort((a, b) => b[1] - a[1])
      .slice(0, 8)
      .map(([file, bytes]) => ({ file, bytesPerPacket: bytes / packets })),
  };
}

/** A device with one QP and a region, taken to RTS against what the other process says over IPC. */
async function endpoint(/** @type {string} */ address) {
  const device = await openDevice({ address });
  const pd = await device.createPd();
  const cq = await device.createCq(64);
  const qp = await pd.createQp({ sendCq: cq });
  const region = await pd.regMr(MESSAGE_BYTES, Access.REMOTE_ALL);
  const { receiveBudgetPackets } = device.attributes;
  process.send?.({
    hello: { address, qpn: qp.qpn, addr: String(region.addr), rkey: region.rkey, receiveBudgetPackets },
  });
  const [peer] = await once(process, 'message');
  await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: Access.REMOTE_ALL });
  await qp.modify({
    state: 'RTR',
    av: { address: IpAddress.parse(peer.address) },
    pathMtu: 4096,
    destQpn: peer.qpn,
    rqPsn: 0,
    maxDestRdAtomic: 16,
    minRnrTimer: 12,
    inflightPackets: peer.receiveBudgetPackets,
  });
  await qp.modify({ state: 'RTS', sqPsn: 0, timeout: 14, retryCnt: 7, rnrRetry: 7, maxRdAtomic: 16 });
  return { device, cq, qp, region, peer };
}

async function sender(/** @type {number} */ messages) {
  const { device, cq, qp, region, peer } = await endpoint('127.0.0.2');
  const target = { remoteAddr: BigInt(peer.addr), rkey: peer.rkey };
  const write = async (/** @type {number} */ count) => {
    for (let posted = 0, done = 0; done < count; ) {
      for (; posted < count && posted - done < IN_FLIGHT; posted++) {
        qp.postSend({ opcode: 'RDMA_WRITE', sges: [region.sge()], ...target });
      }
      checkCompletion(await cq.next());
      done++;
    }
  };
  await write(WARM_UP_MESSAGES);
  process.send?.({ warm: true });
  const result = await profiled(async () => {
    const before = device.counters().tx_data_packets;
    await write(messages);
    return device.counters().tx_data_packets - before;
  });
  process.send?.({ sender: result });
  process.disconnect();
  await device.close();
}

async function receiver() {
  const { device } = await endpoint('127.0.0.1');
  await once(process, 'message');
  const result = await profiled(async () => {
    const before = device.counters().rx_packets;
    await once(process, 'message');
    return device.counters().rx_packets - before;
  });
  process.send?.({ receiver: result });
  process.disconnect();
  await device.close();
}

async function main(/** @type {number} */ messages, /** @type {boolean} */ json) {
  /** @type {any} */
  const results = {};
  const receiving = fork(SELF, ['--role', 'receiver']);
  const sending = fork(SELF, ['--role', 'sender', '--messages', String(messages)]);
  for (const [side, other] of [
    [receiving, sending],
    [sending, receiving],
  ]) {
    side.on('message', (/** @type {any} */ message) => {
      Object.assign(results, message);
      // Hellos cross; the sender's news make the receiver start and stop counting.
      if (message.hello) other.send(message.hello);
      else if (side === sending) receiving.send(message.warm ? 'start' : 'stop');
    });
  }
  await Promise.all([once(receiving, 'exit'), once(sending, 'exit')]);
  if (json) {
    console.log(JSON.stringify({ sender: results.sender, receiver: results.receiver }));
    return;
  }
  for (const side of ['sender', 'receiver']) {
    const { packets, ownBytesPerPacket, nodeBytesPerPacket, top } = results[side];
    console.log(
      `${side}: ${packets} packets, rocev2 ${ownBytesPerPacket.toFixed(1)} bytes a packet, Node and V8 ${nodeBytesPerPacket.toFixed(1)}`,
    );
    for (const { file, bytesPerPacket } of top) console.log(`  ${bytesPerPacket.toFixed(1).padStart(8)}  ${file}`);
  }
}

const { values } = parseArgs({
  options: {
    role: { type: 'string' },
    messages: { type: 'string', default: '200' },
    json: { type: 'boolean', default: false },
  },
});
if (values.role === 'sender') await sender(Number(values.messages));
else if (values.role === 'receiver') await receiver();
else await main(Number(values.messages), values.json);
