/**
 * Random I/O of fio through whole chains of processes, side by side: our gateway with the disk in its own process, our gateway to our storage
 * server over RDMA and over TCP, and nbdkit's disk in memory, which is C and has no network behind it. Runs take turns; medians.
 *
 *     npm run bench:disk [-- --reps 3 --seconds 2] [--extents]
 *
 * With --extents only the gateway to the server over RDMA, and a gateway to a disk over three extent nodes, each a process: every write of that is on three disks before it is answered. The
 * server's disk is in memory. CPU time is then that of the gateways and of the server, and not that of the nodes.
 */

import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { Chains } from './fio/chains.js';
import { measureCell, printTitles } from './fio/fio.js';

const SIZE = '268435456';
/** What fio uses of it. */
const USED_MIB = 128;

const { values } = parseArgs({
  options: {
    reps: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '2' },
    extents: { type: 'boolean', default: false },
  },
});
const reps = Number(values.reps);
const seconds = Number(values.seconds);

const CELLS = ['randread', 'randwrite'].flatMap((op) => [
  { op, block: '8k', depth: 1 },
  { op, block: '8k', depth: 16 },
  { op, block: '8k', depth: 32 },
  { op, block: '1m', depth: 4 },
]);

const chains = new Chains();
const REFERENCE = values.extents ? 'gateway, RDMA' : 'nbdkit';
const MANAGER_PORT = '18731';

/** @returns {Promise<import('./fio/chains.js').Chain[]>} */
async function contenders() {
  const server = await chains.rocev2('disk', 'serve', '--backend', 'memory', '--size', SIZE, '--bind', '127.54.2.1');
  const gateway = (/** @type {string} */ name, /** @type {string[]} */ ...args) =>
    chains.rocev2('disk', 'nbd', '--listen', `unix:${chains.socket(name)}`, ...args);
  const meet = ['--connect', '127.54.2.1', '--shared', '--transport']; // Two gateways of one disk, which take turns.
  const rdma = await gateway('gateway, RDMA', ...meet, 'rdma', '--bind', '127.54.2.2');
  if (values.extents) {
    await chains.rocev2('extents', 'up', '--dir', chains.socket('cluster'), '--nodes', '3', '-p', MANAGER_PORT);
    const manager = `127.0.0.1:${MANAGER_PORT}`;
    await chains.runs('extents', 'disk', 'create', 'vol', '--size', SIZE, '--manager', manager);
    const disk = await gateway('gateway, extents', '--backend', `stream:vol@${manager}`);
    return [
      { name: 'gateway, RDMA', processes: [rdma, server] },
      { name: 'gateway, extents', processes: [disk] },
    ].map(({ name, processes }) => ({ name, reference: REFERENCE, socket: chains.socket(name), processes }));
  }
  const tcp = await gateway('gateway, TCP', ...meet, 'tcp');
  const alone = await gateway('gateway alone', '--backend', 'memory', '--size', SIZE);
  const nbdkit = await chains.start(
    'nbdkit',
    ['-f', '-v', '-U', chains.socket('nbdkit'), 'memory', SIZE],
    /bound to|accepting|listen/,
  );
  return [
    { name: 'gateway, RDMA', processes: [rdma, server] },
    { name: 'gateway, TCP', processes: [tcp, server] },
    { name: 'gateway alone', processes: [alone] },
    { name: 'nbdkit', processes: [nbdkit] },
  ].map(({ name, processes }) => ({ name, reference: REFERENCE, socket: chains.socket(name), processes }));
}

try {
  const all = await contenders();
  console.log(`node ${process.version}, ${cpus().length} x ${cpus()[0].model}, ${reps} turns of ${seconds} s; medians`);
  console.log('CPU: of gateway and server together, or of nbdkit; not of fio\n');
  printTitles(REFERENCE);
  await chains.warm(all, USED_MIB, 1);
  for (const cell of CELLS) {
    await measureCell(cell, all, reps, (i) => chains.measure(all[i], cell, USED_MIB, seconds));
  }
} finally {
  await chains.close();
}
