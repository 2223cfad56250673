/**
 * Our target and the kernel's, nvmet, both in one guest of QEMU, under fio in another. Both targets have the same emulated processors and the
 * same link; the packages and Node.js of this machine are copied into the guest.
 */

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { cpuNs } from '../fio/chains.js';
import { fioOptions, medianSample, sampleOf } from '../fio/fio.js';
import { DISK_MIB } from './cells.js';
import { GUEST_HEAD, guestRow, withGuestRows } from './guest-table.js';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const RIG = join(ROOT, 'test/interop/rig/rig');
const RESULTS = join(ROOT, 'packages/nvme/docs/results.md');
/** Exit code of the rig for a command that took too long. */
const EXIT_TOO_LONG = 124;
/** @type {readonly ['nvmet', 'rocev2']} */
const SIDES = ['nvmet', 'rocev2'];
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
  /** @type {{packages: Record<string, {dev?: boolean, link?: boolean, resolved?: string}>}} */
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  for (const [path, { dev, link, resolved }] of Object.entries(packages)) {
    if (path === '') continue;
    if (link === true) {
      mkdirSync(dirname(join(files, path)), { recursive: true });
      symlinkSync(relative(dirname(path), resolved ?? ''), join(files, path));
      continue;
    }
    if (path.startsWith('packages/')) {
      for (const part of ['package.json', 'dist', 'bin'].filter((name) => existsSync(join(ROOT, path, name)))) {
        cpSync(join(ROOT, path, part), join(files, path, part), { recursive: true });
      }
      continue;
    }
    if (dev === true) continue;
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
const ours = (/** @type {string} */ options) => ({
  nqn: OUR_NQN,
  start: async () => {
    // Soft-RoCE of this guest has the UDP port as long as its module is loaded.
    await inGuest(2, 'if [ -e /sys/class/infiniband/rxe0 ]; then rdma link delete rxe0; fi', 'modprobe -r rdma_rxe');
    const node = 'cd /rocev2 && exec env LD_LIBRARY_PATH=/rocev2/lib ./node packages/cli/bin/rocev2.js';
    const disk = `--disk memory --size ${DISK_MIB}MiB --bind ${TARGET} ${options}`;
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
});

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

/** Process ID of the emulator of the guest with the target. */
async function emulatorOfTarget() {
  const { guests } = JSON.parse((await rig('status')).stdout);
  return guests.find((/** @type {{number: number}} */ { number }) => number === 2).process.pid;
}

/** Runs fio on the disk of the first guest; undefined: it took longer than the limit. @param {string[]} options @param {number} limitS */
async function fio(options, limitS) {
  try {
    const line = `fio --ioengine=libaio --direct=1 --filename=/dev/nvme0n1 ${options.join(' ')}`;
    return (await rig('exec', '-g', '1', '-t', `${limitS}`, line)).stdout;
  } catch (error) {
    if (/** @type {{code?: number}} */ (error).code === EXIT_TOO_LONG) return undefined;
    throw error;
  }
}

/**
 * Measures all cells of one target over one transport. It is started once, its disk is written once, and then it is warm: code of JavaScript is
 * compiled when it has run often, and that takes an emulated processor seconds.
 * @param {{side: 'nvmet' | 'rocev2', transport: string}} contender @param {Plan} plan @param {number} emulator
 * @param {(place: number, sample: import('../fio/fio.js').Sample | undefined) => void} onSample undefined: it did not end within the limit
 */
async function measureAll({ side, transport }, plan, emulator, onSample) {
  const { cells, seconds, warmSeconds, limitSeconds, targetOptions } = plan;
  const target = side === 'nvmet' ? nvmet(transport) : ours(targetOptions);
  await target.start();
  const connect = `nvme connect -t ${transport} -a ${TARGET} -s 4420 -n ${target.nqn}`;
  await inGuest(1, connect, 'until [ -b /dev/nvme0n1 ]; do usleep 50000; done');
  // A hole is read without data. Random bytes would cost the guest more time than the disk.
  const fill = `tr '\\0' x < /dev/zero | dd of=/dev/nvme0n1 bs=1M count=${DISK_MIB} iflag=fullblock oflag=direct 2> /dev/null`;
  if (cells.some(({ op }) => op === 'randread')) await inGuest(1, fill);
  for (const op of new Set(cells.map((cell) => cell.op))) {
    await fio(fioOptions({ op, block: '4k', depth: 8 }, DISK_MIB, warmSeconds), limitSeconds);
  }
  for (const [place, cell] of cells.entries()) {
    const before = cpuNs(emulator);
    const printed = await fio(fioOptions(cell, DISK_MIB, seconds), limitSeconds);
    const sample = printed === undefined ? undefined : sampleOf(printed, cell, cpuNs(emulator) - before);
    console.log(`${side}, ${transport}: ${lineOf(cell, sample)}; load ${loadavg()[0].toFixed(1)}`);
    onSample(place, sample);
  }
  await inGuest(1, 'nvme disconnect-all');
  await target.stop();
}

/** @param {import('../fio/fio.js').Cell} cell @param {import('../fio/fio.js').Sample | undefined} sample */
const lineOf = ({ op, block, depth }, sample) =>
  `${op} ${block} depth ${depth}: ${sample === undefined ? 'did not end in time' : `${sample.iops.toFixed(1)} IOPS, p50 ${sample.p50Us.toFixed(0)} us`}`;

/** Measures all cells over one transport, both targets in turn. `onRow` gets each row again when it has new numbers. @param {string} transport @param {Plan} plan @param {number} emulator @param {(row: string) => void} onRow */
async function measureTransport(transport, plan, emulator, onRow) {
  const { rounds, cells } = plan;
  /** By target and cell. @type {import('../fio/fio.js').Sample[][][]} */
  const samples = SIDES.map(() => cells.map(() => []));
  const load = [loadavg()[0]];
  for (let round = 0; round < rounds; round++) {
    for (const [i, side] of SIDES.entries()) {
      await measureAll({ side, transport }, plan, emulator, (place, sample) => {
        load.push(loadavg()[0]);
        if (sample !== undefined) samples[i][place].push(sample);
        if (side !== SIDES.at(-1)) return;
        const [nvmet, rocev2] = samples.map((of) => medianSample(of[place]));
        // The two guests alone make a load of 2 to 4.
        const span = `${Math.min(...load).toFixed(0)} to ${Math.max(...load).toFixed(0)}`;
        const when = `${new Date().toISOString().slice(0, 10)}, ${span}`;
        onRow(guestRow({ cell: cells[place], transport, nvmet, rocev2 }, when));
      });
    }
  }
}

/**
 * @typedef {{rounds: number, seconds: number, warmSeconds: number, limitSeconds: number, targetOptions: string, transports: string[], isWritten: boolean,
 *   cells: import('../fio/fio.js').Cell[]}} Plan
 * @param {Plan} plan
 */
export async function benchGuests(plan) {
  const { transports } = plan;
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
    const emulator = await emulatorOfTarget();
    console.log(GUEST_HEAD.join('\n'));
    const onRow = (/** @type {string} */ row) => {
      console.log(row);
      // At once: what has been measured stays, whatever becomes of the rest.
      if (plan.isWritten) writeFileSync(RESULTS, withGuestRows(readFileSync(RESULTS, 'utf8'), [row]));
    };
    for (const transport of transports) await measureTransport(transport, plan, emulator, onRow);
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
