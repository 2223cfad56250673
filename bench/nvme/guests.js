/**
 * Our target and the kernel's, nvmet, both in one guest of QEMU, under fio in another. Both targets have the same emulated processors and the
 * same link; the packages and Node.js of this machine are copied into the guest.
 */

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { fioOptions, measureCell, printTitles, sampleOf } from '../fio/fio.js';
import { DISK_MIB } from './cells.js';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const RIG = join(ROOT, 'test/interop/rig/rig');
const CLOCK_TICK_NS = 1e7;
const OUR_NQN = 'nqn.2026-11.rocev2:disk';
const KERNEL_NQN = 'nqn.2026-11.example:kernel';
/** The guest with the targets. */
const TARGET = '10.77.0.3';
const PORT = 8000;
const PATIENCE_S = '600';
const ENV = { ...process.env, RIG_NAME: 'bench-nvme', RIG_MEMORY: '1024' };
const NVMET = '/sys/kernel/config/nvmet';

/** @param {string[]} args */
const rig = (...args) => run(RIG, args, { env: ENV, maxBuffer: 1 << 24 });
/** Runs commands in a guest; each must succeed. @param {1 | 2} guest @param {string[]} lines */
const inGuest = async (guest, ...lines) =>
  (await rig('exec', '-g', `${guest}`, '-t', PATIENCE_S, `set -e\n${lines.join('\n')}`)).stdout;

/** Two guests. They end with this process, however it ends. */
async function boot() {
  const holder = spawn(RIG, ['up', '--guests', '2', '--mtu', '4200', '--hold'], {
    env: ENV,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let words = '';
  holder.stdout.setEncoding('utf8').on('data', (text) => {
    words += text;
  });
  while (!words.includes('up after')) {
    await Promise.race([once(holder.stdout, 'data'), once(holder, 'exit')]);
    if (holder.exitCode !== null) throw new Error('the guests did not start');
  }
  return holder;
}

/** A folder with all that runs our target: Node.js, its libraries, dist and the packages that it needs. @param {string} folder */
async function collect(folder) {
  const files = join(folder, 'rocev2');
  mkdirSync(join(files, 'lib'), { recursive: true });
  cpSync(process.execPath, join(files, 'node'), { dereference: true });
  const { stdout } = await run('ldd', [process.execPath]);
  for (const [, name, path] of stdout.matchAll(/(\S+) => (\/\S+)/g)) {
    cpSync(path, join(files, 'lib', name), { dereference: true });
  }
  cpSync(join(ROOT, 'dist'), join(files, 'dist'), { recursive: true, filter: (path) => !path.endsWith('.map') });
  cpSync(join(ROOT, 'package.json'), join(files, 'package.json'));
  /** @type {{packages: Record<string, {dev?: boolean}>}} */
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  for (const [path, { dev }] of Object.entries(packages)) {
    if (path === '' || dev === true || /(^|\/)uplot$/.test(path)) continue;
    const filter = (/** @type {string} */ file) => !/\.(map|ts|cts|mts)$/.test(file);
    try {
      cpSync(join(ROOT, path), join(files, path), { recursive: true, dereference: true, filter });
    } catch (error) {
      // Optional packages for other machines are not there.
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ENOENT') throw error;
    }
  }
  await run('tar', ['-C', files, '-cf', join(folder, 'rocev2.tar'), '.']);
}

/** Serves the folder to the guests. @param {string} folder */
async function serveFolder(folder) {
  const args = ['host', 'python3', '-m', 'http.server', '--bind', '10.77.0.1', '--directory', folder, `${PORT}`];
  const server = spawn(RIG, args, { env: ENV, stdio: 'ignore' });
  await inGuest(2, `until wget -q -O /dev/null http://10.77.0.1:${PORT}/; do usleep 200000; done`);
  return server;
}

/** The kernel's target on both transports, on a file in memory: the same medium as ours. */
const startNvmet = () => {
  const subsystem = `${NVMET}/subsystems/${KERNEL_NQN}`;
  return inGuest(
    2,
    ...['modprobe nvmet-rdma', 'modprobe nvmet-tcp', 'mount -t configfs none /sys/kernel/config'],
    `truncate -s ${DISK_MIB}M /dev/shm/disk`,
    ...[`mkdir ${subsystem} ${subsystem}/namespaces/1`, `echo 1 > ${subsystem}/attr_allow_any_host`],
    `echo -n /dev/shm/disk > ${subsystem}/namespaces/1/device_path`,
    ...[`echo 1 > ${subsystem}/namespaces/1/buffered_io`, `echo 1 > ${subsystem}/namespaces/1/enable`],
    ...['rdma', 'tcp'].flatMap((transport, i) => {
      const port = `${NVMET}/ports/${i + 1}`;
      return [
        `mkdir ${port}`,
        ...[`echo ipv4 > ${port}/addr_adrfam`, `echo ${transport} > ${port}/addr_trtype`],
        ...[`echo ${TARGET} > ${port}/addr_traddr`, `echo 4420 > ${port}/addr_trsvcid`],
      ];
    }),
  );
};

/** @param {string} transport */
const nvmetPort = (transport) => `${NVMET}/ports/${transport === 'rdma' ? 1 : 2}/subsystems`;

/** Both targets use UDP port 4791 and TCP port 4420, so that only one of them may listen. */
const ours = {
  nqn: OUR_NQN,
  start: async () => {
    // Soft-RoCE of this guest has the UDP port as long as its module is loaded.
    await inGuest(2, 'if [ -e /sys/class/infiniband/rxe0 ]; then rdma link delete rxe0; fi', 'modprobe -r rdma_rxe');
    const node = 'cd /rocev2 && exec env LD_LIBRARY_PATH=/rocev2/lib ./node dist/cli/main.js';
    const disk = `--disk memory --size ${DISK_MIB}MiB --bind ${TARGET}`;
    await rig('bg', '-g', '2', 'target', `${node} nvme target ${disk}`);
    for (;;) {
      const { stdout, stderr } = await rig('log', '-g', '2', 'target');
      if (`${stdout}${stderr}`.includes('Ctrl-C ends it')) return;
      if (/^rocev2: |Error/m.test(`${stdout}${stderr}`))
        throw new Error(`our target did not start: ${stdout}${stderr}`);
      await inGuest(2, 'sleep 1');
    }
  },
  stop: () => rig('kill', '-g', '2', 'target'),
};

/** @param {string} transport */
const nvmet = (transport) => ({
  nqn: KERNEL_NQN,
  start: () =>
    inGuest(
      2,
      'modprobe rdma_rxe; if [ ! -e /sys/class/infiniband/rxe0 ]; then rdma link add rxe0 type rxe netdev eth0; fi',
      `ln -s ${NVMET}/subsystems/${KERNEL_NQN} ${nvmetPort(transport)}/`,
    ),
  stop: () => inGuest(2, `rm ${nvmetPort(transport)}/${KERNEL_NQN}`),
});

/** CPU time of all processors of the guest with the target that was not idle, in ns. */
async function guestCpuNs() {
  const [user, nice, system, , , irq, softirq] = (await inGuest(2, 'awk \'$1 == "cpu" { $1 = ""; print }\' /proc/stat'))
    .trim()
    .split(/\s+/)
    .map(Number);
  return (user + nice + system + irq + softirq) * CLOCK_TICK_NS;
}

/** @param {{rounds: number, seconds: number, cells: import('../fio/fio.js').Cell[]}} plan */
export async function benchGuests({ rounds, seconds, cells }) {
  const folder = mkdtempSync(join(tmpdir(), 'rocev2-bench-'));
  /** @type {import('node:child_process').ChildProcess[]} */
  const processes = [];
  try {
    await collect(folder);
    processes.push(await boot());
    processes.push(await serveFolder(folder));
    await inGuest(2, 'mkdir /rocev2', `wget -q -O - http://10.77.0.1:${PORT}/rocev2.tar | tar -x -C /rocev2`);
    await startNvmet();
    await inGuest(1, 'modprobe nvme-rdma', 'modprobe nvme-tcp');
    const contenders = ['rdma', 'tcp'].flatMap((transport) => [
      { name: `nvmet, ${transport}`, reference: `nvmet, ${transport}`, transport, target: nvmet(transport) },
      { name: `rocev2, ${transport}`, reference: `nvmet, ${transport}`, transport, target: ours },
    ]);
    const fio = (/** @type {import('../fio/fio.js').Cell} */ cell, /** @type {number} */ time) =>
      inGuest(
        1,
        `fio --ioengine=libaio --direct=1 --filename=/dev/nvme0n1 ${fioOptions(cell, DISK_MIB, time).join(' ')}`,
      );
    const measure = async (/** @type {number} */ i, /** @type {import('../fio/fio.js').Cell} */ cell) => {
      const { transport, target } = contenders[i];
      await target.start();
      const connect = `nvme connect -t ${transport} -a ${TARGET} -s 4420 -n ${target.nqn}`;
      await inGuest(1, connect, 'until [ -b /dev/nvme0n1 ]; do usleep 50000; done');
      // A disk full of data, and code that has been compiled.
      await inGuest(1, `dd if=/dev/urandom of=/dev/nvme0n1 bs=1M count=${DISK_MIB} oflag=direct 2> /dev/null`);
      await fio({ ...cell, depth: 4 }, 1);
      const before = await guestCpuNs();
      const printed = await fio(cell, seconds);
      const sample = sampleOf(printed, cell, (await guestCpuNs()) - before);
      await inGuest(1, 'nvme disconnect-all');
      await target.stop();
      return sample;
    };
    console.log('\nfio in one guest, the target in another, MTU 4200, emulated processors; a disk in memory.');
    console.log('CPU: all that the guest with the target has used');
    printTitles('nvmet over the same transport');
    for (const cell of cells) await measureCell(cell, contenders, rounds, (i) => measure(i, cell));
  } finally {
    const [guests, server] = processes;
    server?.kill();
    if (guests?.exitCode === null) {
      guests.stdin?.end();
      await once(guests, 'exit');
    }
    rmSync(folder, { recursive: true });
  }
}
