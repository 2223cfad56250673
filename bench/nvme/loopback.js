/** Our NVMe host behind an NBD gateway, and our own storage RPC behind one: the disk is in memory, all processes are on this machine. */

import { Chains } from '../fio/chains.js';
import { measureCell, printTitles } from '../fio/fio.js';
import { DISK_MIB } from './cells.js';

const NQN = 'nqn.2026-11.rocev2:disk';

/** @param {{rounds: number, seconds: number, cells: import('../fio/fio.js').Cell[]}} plan */
export async function benchLoopback({ rounds, seconds, cells }) {
  const chains = new Chains();
  try {
    const disk = ['memory', '--size', `${DISK_MIB}MiB`];
    const target = await chains.rocev2('nvme', 'target', '--disk', ...disk, '--bind', '127.54.3.1');
    /** @type {import('../fio/chains.js').Chain[]} */
    const contenders = [];
    for (const [transport, address] of [
      ['rdma', '127.54.3.2'],
      ['tcp', '127.54.3.4'],
    ]) {
      const server = await chains.rocev2('disk', 'serve', '--backend', ...disk, '--bind', address);
      const rpc = `storage RPC, ${transport}`;
      const nvme = `NVMe, ${transport}`;
      const gateway = (/** @type {string} */ name, /** @type {string[]} */ ...to) =>
        chains.rocev2('disk', 'nbd', '--listen', `unix:${chains.socket(name)}`, ...to);
      const bind = transport === 'rdma' ? ['--bind', '127.54.3.3'] : [];
      const viaRpc = await gateway(rpc, '--connect', address, '--transport', transport, ...bind);
      const viaNvme = await gateway(nvme, '--backend', `nvme+${transport}://127.54.3.1/${NQN}`);
      contenders.push({ name: rpc, reference: rpc, socket: chains.socket(rpc), processes: [viaRpc, server] });
      contenders.push({ name: nvme, reference: rpc, socket: chains.socket(nvme), processes: [viaNvme, target] });
    }
    console.log('\nfio, NBD gateway, and a disk in memory behind it. CPU: gateway and server together');
    printTitles('the storage RPC over the same transport');
    await chains.warm(contenders, DISK_MIB, 2);
    for (const cell of cells) {
      await measureCell(cell, contenders, rounds, (i) => chains.measure(contenders[i], cell, DISK_MIB, seconds));
    }
  } finally {
    await chains.close();
  }
}
