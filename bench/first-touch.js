// @ts-check
/**
 * What the first use of memory costs: two processes with a region each; one WRITEs 4 MiB messages over all of it, three times. The first pass meets pages that
 * nobody has touched, unless the library made them with the region (`--memory own`: it did not, the program brought the memory); the last is the steady rate.
 * Before them 64 MiB go through a small region, so that the code is warm; `--cold` leaves that to the first pass, `--warm-up MS` to `warmUp`, at both ends.
 *
 *   node bench/first-touch.js [--mib 256] [--reps 5] [--engine worker|inline] [--cold | --warm-up 1000] [--json]
 */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Access, checkCompletion, IpAddress, openDevice, warmUp } from '../build/src/index.js';

const SELF = fileURLToPath(import.meta.url);
const MESSAGE_BYTES = 4 << 20;
const WARM_UP_MESSAGES = 16;
const PASSES = 3;
const IN_FLIGHT = 4;
const PSN = 1;

const { values } = parseArgs({
  options: {
    mib: { type: 'string', default: '256' },
    reps: { type: 'string', default: '5' },
    engine: { type: 'string', default: 'worker' },
    memory: { type: 'string', default: 'library' },
    cold: { type: 'boolean', default: false },
    'warm-up': { type: 'string' },
    json: { type: 'boolean', default: false },
    role: { type: 'string', default: 'main' },
  },
});
const messages = (Number(values.mib) << 20) / MESSAGE_BYTES;
const engine = /** @type {'inline' | 'worker'} */ (values.engine);

const { 'warm-up': warmUpMs } = values;
const code = warmUpMs !== undefined ? 'warmed up' : values.cold ? 'cold' : 'warm';

const cpuSeconds = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};

/** A device with one QP, a small region and the large one, taken to RTS against what the peer's process says. */
async function endpoint(
  /** @type {string} */ address,
  /** @type {import('node:child_process').ChildProcess | NodeJS.Process} */ peerProcess,
) {
  const device = await openDevice({ address, engine, io: 'auto', udpPort: 0 });
  if (warmUpMs !== undefined) await warmUp(device, { durationMs: Number(warmUpMs) });
  const pd = await device.createPd();
  const cq = await device.createCq(64);
  const qp = await pd.createQp({ sendCq: cq });
  const small = await pd.regMr(MESSAGE_BYTES, Access.REMOTE_ALL);
  const length = messages * MESSAGE_BYTES;
  const own = () => new Uint8Array(engine === 'worker' ? new SharedArrayBuffer(length) : new ArrayBuffer(length));
  const beforeCpu = cpuSeconds();
  const large = await pd.regMr(values.memory === 'own' ? own() : length, Access.REMOTE_ALL);
  const registerCpu = cpuSeconds() - beforeCpu;
  const name = (/** @type {typeof small} */ { addr, rkey }) => ({ addr: String(addr), rkey });
  const { udpPort, receiveBudgetPackets } = device.attributes;
  peerProcess.send?.({ address, udpPort, receiveBudgetPackets, qpn: qp.qpn, small: name(small), large: name(large) });
  const [peer] = await once(peerProcess, 'message');
  await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: Access.REMOTE_ALL });
  await qp.modify({
    state: 'RTR',
    av: { address: IpAddress.parse(peer.address), udpPort: peer.udpPort },
    pathMtu: 4096,
    destQpn: peer.qpn,
    rqPsn: PSN,
    maxDestRdAtomic: 16,
    minRnrTimer: 12,
    inflightPackets: peer.receiveBudgetPackets,
  });
  await qp.modify({ state: 'RTS', sqPsn: PSN, timeout: 14, retryCnt: 7, rnrRetry: 7, maxRdAtomic: 16 });
  return { device, cq, qp, small, large, peer, registerCpu };
}

async function server() {
  const { device } = await endpoint('127.0.0.1', process);
  process.on('message', () => process.send?.({ cpu: cpuSeconds() }));
  process.send?.('ready');
  await once(process, 'disconnect');
  await device.close();
}

/** Seconds and processor seconds (both ends) of every pass. */
async function client() {
  const serving = fork(SELF, ['--role', 'server', ...process.argv.slice(4)]);
  const { device, cq, qp, small, large, peer, registerCpu } = await endpoint('127.0.0.2', serving);
  await once(serving, 'message');
  const write = async (/** @type {number} */ count, /** @type {typeof small} */ from, /** @type {any} */ to) => {
    const places = from.length / MESSAGE_BYTES;
    for (let posted = 0, done = 0; done < count; done++) {
      for (; posted < count && posted - done < IN_FLIGHT; posted++) {
        const offset = (posted % places) * MESSAGE_BYTES;
        const sges = [from.sge(offset, MESSAGE_BYTES)];
        qp.postSend({ opcode: 'RDMA_WRITE', sges, remoteAddr: BigInt(to.addr) + BigInt(offset), rkey: to.rkey });
      }
      checkCompletion(await cq.next());
    }
  };
  const cpuOfBoth = async () => {
    serving.send('cpu');
    const [{ cpu }] = await once(serving, 'message');
    return cpu + cpuSeconds();
  };
  if (code === 'warm') await write(WARM_UP_MESSAGES, small, peer.small);
  const passes = [];
  for (let pass = 0; pass < PASSES; pass++) {
    const before = { cpu: await cpuOfBoth(), ms: performance.now() };
    await write(messages, large, peer.large);
    const seconds = (performance.now() - before.ms) / 1000;
    passes.push({ seconds, cpu: (await cpuOfBoth()) - before.cpu });
  }
  process.send?.({ passes, registerCpu, retransmitted: device.counters().tx_retransmitted });
  serving.disconnect();
  await device.close();
  process.disconnect();
}

const median = (/** @type {number[]} */ list) => [...list].sort((x, y) => x - y)[list.length >> 1];

async function main() {
  const startOptions = [...(values.cold ? ['--cold'] : []), ...(warmUpMs === undefined ? [] : ['--warm-up', warmUpMs])];
  /** @type {any[]} */
  const reps = [];
  for (let rep = 0; rep < Number(values.reps); rep++) {
    /** @type {any} */
    const result = {};
    // In turn, so that what else the machine does meets both.
    for (const memory of ['library', 'own']) {
      const options = ['--mib', values.mib, '--engine', engine, '--memory', memory, ...startOptions];
      const child = fork(SELF, ['--role', 'client', ...options]);
      [result[memory]] = await once(child, 'message');
      await once(child, 'exit');
    }
    reps.push(result);
  }
  const rows = ['library', 'own'].map((memory) => {
    const passes = (/** @type {number} */ i) => reps.map((rep) => rep[memory].passes[i]);
    const ratio = (/** @type {'seconds' | 'cpu'} */ unit) =>
      median(reps.map(({ [memory]: { passes } }) => passes[PASSES - 1][unit] / passes[0][unit]));
    const perGiB = (/** @type {number} */ i) => (median(passes(i).map(({ cpu }) => cpu)) * 1024) / Number(values.mib);
    return {
      memory,
      registerCpu: median(reps.map((rep) => rep[memory].registerCpu)),
      firstOfSteady: ratio('seconds'),
      firstOfSteadyCpu: ratio('cpu'),
      firstCpuPerGiB: perGiB(0),
      steadyCpuPerGiB: perGiB(PASSES - 1),
      retransmitted: median(reps.map((rep) => rep[memory].retransmitted)),
    };
  });
  if (values.json) return console.log(JSON.stringify({ node: process.version, engine, code, rows, reps }));
  console.log(
    `node ${process.version}, mmsg/${engine}, WRITE, ${values.mib} MiB a pass, code ${code}, medians of ${values.reps}`,
  );
  for (const row of rows) {
    console.log(
      `pages ${row.memory === 'own' ? 'at first touch' : 'when allocated'}: registration ${(row.registerCpu * 1000).toFixed(0)} ms of CPU, first pass ${row.firstOfSteady.toFixed(2)} of the steady rate, ` +
        `CPU s/GiB of both ends ${row.firstCpuPerGiB.toFixed(2)}, then ${row.steadyCpuPerGiB.toFixed(2)}; retransmitted ${row.retransmitted}`,
    );
  }
}

await /** @type {Record<string, () => Promise<void>>} */ ({ main, client, server })[values.role]();
