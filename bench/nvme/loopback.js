/** Our NVMe host behind an NBD gateway, and our own storage RPC behind one: the disk is in memory, all processes are on this machine. */

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { CELLS, DISK_MIB, fioOptions, measureCell, printTitles, sampleOf } from './fio.js';

const run = promisify(execFile);
const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const CLOCK_TICK_NS = 1e7; // USER_HZ is 100 on every Linux that matters.
const NQN = 'nqn.2026-11.rocev2:disk';

/** CPU time a process has had, in nanoseconds. @param {import('node:child_process').ChildProcess} child */
function cpuNs({ pid }) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) * CLOCK_TICK_NS;
}

/** @param {{rounds: number, seconds: number}} plan */
export async function benchLoopback({ rounds, seconds }) {
  const folder = mkdtempSync(join(tmpdir(), 'rocev2-bench-'));
  /** @type {import('node:child_process').ChildProcess[]} */
  const processes = [];
  const rocev2 = async (/** @type {string[]} */ ...args) => {
    const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
    processes.push(child);
    let words = '';
    child.stderr.setEncoding('utf8').on('data', (text) => {
      words += text;
    });
    while (!words.includes('Ctrl-C ends it')) {
      await Promise.race([once(child.stderr, 'data'), once(child, 'exit')]);
      if (child.exitCode !== null) throw new Error(`rocev2 ${args.join(' ')} ended: ${words}`);
    }
    return child;
  };
  const socket = (/** @type {string} */ name) => join(folder, name.replaceAll(/\W+/g, '-'));
  try {
    const disk = ['memory', '--size', `${DISK_MIB}MiB`];
    const target = await rocev2('nvme', 'target', '--disk', ...disk, '--bind', '127.54.3.1');
    const contenders = [];
    for (const [transport, address] of [
      ['rdma', '127.54.3.2'],
      ['tcp', '127.54.3.4'],
    ]) {
      const server = await rocev2('disk', 'serve', '--backend', ...disk, '--bind', address);
      const chain = `storage RPC, ${transport}`;
      const nvme = `NVMe, ${transport}`;
      const meet = ['--connect', address, '--transport', transport];
      const bind = transport === 'rdma' ? ['--bind', '127.54.3.3'] : [];
      const viaRpc = await rocev2('disk', 'nbd', '--listen', `unix:${socket(chain)}`, ...meet, ...bind);
      const backend = ['--backend', `nvme+${transport}://127.54.3.1/${NQN}`];
      const viaNvme = await rocev2('disk', 'nbd', '--listen', `unix:${socket(nvme)}`, ...backend);
      contenders.push({ name: chain, reference: chain, processes: [viaRpc, server] });
      contenders.push({ name: nvme, reference: chain, processes: [viaNvme, target] });
    }
    const measure = async (/** @type {number} */ i, /** @type {import('./fio.js').Cell} */ cell, time = seconds) => {
      const { name, processes } = contenders[i];
      const total = () => processes.reduce((sum, child) => sum + cpuNs(child), 0);
      const before = total();
      const uri = `--uri=nbd+unix:///?socket=${socket(name)}`;
      const { stdout } = await run('fio', ['--ioengine=nbd', uri, ...fioOptions(cell, time)]);
      return sampleOf(stdout, cell, total() - before);
    };
    console.log('\nfio, NBD gateway, and a disk in memory behind it. CPU: gateway and server together');
    printTitles('the storage RPC over the same transport');
    // Code is slow until it has been compiled, and holes are answered without data.
    for (const i of contenders.keys()) {
      await measure(i, { op: 'write', block: '1m', depth: 4 }, 2);
      await measure(i, { op: 'randread', block: '4k', depth: 4 }, 1);
    }
    for (const cell of CELLS) await measureCell(cell, contenders, rounds, (i) => measure(i, cell));
  } finally {
    for (const child of processes.reverse()) {
      if (child.exitCode !== null) continue;
      child.kill('SIGINT');
      await once(child, 'exit');
    }
    rmSync(folder, { recursive: true });
  }
}
