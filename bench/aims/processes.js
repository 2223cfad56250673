// @ts-check
/** Aims that other programs of this project measure, each by processes of its own: what they say becomes samples. */

import { execFile, execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Chains, cpuNs } from '../fio/chains.js';
import { DISK_KINDS, diskName, MAPPED_SAMPLES } from './list.js';

/**
 * Part of a run: what it is called, whose samples it makes, and the measurement of one repetition.
 * @typedef {object} Step
 * @property {string} name
 * @property {readonly string[]} samples
 * @property {boolean} [once] in the first repetition only
 * @property {(add: (name: string, sample: import('./samples.js').Sample) => void) => Promise<void>} run
 */

const file = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
const MAIN = file('../../packages/cli/bin/rocev2.js');
const FIRST_TOUCH = file('../first-touch.js');
const IDLE_DEVICE = file('idle-device.js');
const MAPPED = file('mapped.js');
const run = promisify(execFile);
const LIMIT_MS = 120_000;

const DISK_OPS = ['randread', 'randwrite'];
const DISK_DEPTHS = [1, 16];
const DISK_BLOCKS = /** @type {Record<number, string>} */ ({ 8192: '8 KiB', 1048576: '1 MiB' });
const DISK_TRANSPORTS = ['rdma', 'tcp'];

/**
 * `rocev2 disk bench`: p50 and processor time of a request, RDMA and TCP in turns.
 * @param {string} duration of a cell @param {typeof DISK_KINDS[number]} [kind] @returns {Step}
 */
export function diskStep(duration, kind = 'disk') {
  const options = ['--blocks', '8KiB,1MiB', '--depths', DISK_DEPTHS.join(), '--reps', '1', '-D', duration, '--json'];
  if (kind === 'disk over UDP') options.push('--io', 'mmsg');
  return {
    name: kind,
    samples: DISK_OPS.flatMap((op) =>
      Object.values(DISK_BLOCKS).flatMap((block) =>
        DISK_DEPTHS.flatMap((depth) => DISK_TRANSPORTS.map((transport) => diskName(kind, op, block, depth, transport))),
      ),
    ),
    run: async (add) => {
      const { stdout } = await run(process.execPath, [MAIN, 'disk', 'bench', ...options], { timeout: LIMIT_MS });
      for (const row of JSON.parse(stdout).rows) {
        const name = diskName(kind, row.op, DISK_BLOCKS[row.blockBytes], row.queueDepth, row.transport);
        add(name, { value: row.latencyNs.p50 / 1e3, cpu: row.cpuNsPerIo / 1e3 });
      }
    },
  };
}

/** Copies to mapped regions, and the packages that use them: `mapped.js`. @returns {Step} */
export function mappedStep() {
  return {
    name: 'mapped',
    samples: MAPPED_SAMPLES,
    once: true,
    run: async (add) => {
      const { stdout } = await run(process.execPath, [MAPPED], { timeout: LIMIT_MS });
      for (const [name, value] of Object.entries(JSON.parse(stdout))) add(name, { value, steady: value });
    },
  };
}

/** What has been done for the code before the first pass: nothing, 64 MiB to the peer, or `warmUp` of one second. @type {Readonly<Record<string, readonly string[]>>} */
export const FIRST_TOUCH_CODE = { cold: ['--cold'], warm: [], 'warmed up': ['--warm-up', '1000'] };

/** The rate of the first pass over fresh memory, of that of the last one. @param {'inline' | 'worker'} engine @param {string} code of FIRST_TOUCH_CODE @returns {Step} */
export function firstTouchStep(engine, code) {
  const name = `first touch: mmsg/${engine}, code ${code}`;
  const options = ['--mib', '256', '--engine', engine, '--memory', 'library', ...FIRST_TOUCH_CODE[code]];
  return {
    name,
    samples: [name],
    run: async (add) => {
      const child = fork(FIRST_TOUCH, ['--role', 'client', ...options]);
      const timer = setTimeout(() => child.kill(), LIMIT_MS);
      try {
        const ended = once(child, 'exit').then(() => {
          throw new Error('first-touch.js has ended without a result');
        });
        const [{ passes, retransmitted }] = await Promise.race([once(child, 'message'), ended]);
        add(name, {
          value: passes.at(-1).seconds / passes[0].seconds,
          cpu: passes.at(-1).cpu / passes[0].cpu,
          retransmitted,
        });
        await ended.catch(() => {});
      } finally {
        clearTimeout(timer);
        child.kill();
      }
    },
  };
}

const GATEWAY_SIZE = '268435456';
const GATEWAY_MIB = 128;

/** fio through our gateway over RDMA to our server, and through nbdkit: as in `bench:disk`, one cell of it. @param {number} seconds of a turn @returns {Step} */
export function gatewayStep(seconds) {
  const name = (/** @type {string} */ op, /** @type {string} */ through) => `gateway: ${op}, ${through}`;
  const throughs = ['RDMA', 'nbdkit'];
  return {
    name: 'gateway',
    samples: DISK_OPS.flatMap((op) => throughs.map((through) => name(op, through))),
    run: async (add) => {
      for (const tool of ['fio', 'nbdkit']) {
        if (!isThere(tool)) throw new Error(`${tool} is not installed`);
      }
      const chains = new Chains();
      try {
        const server = await chains.rocev2(
          'disk',
          'serve',
          '--backend',
          'memory',
          '--size',
          GATEWAY_SIZE,
          '--bind',
          '127.54.3.1',
        );
        const gateway = await chains.rocev2(
          ...['disk', 'nbd', '--listen', `unix:${chains.socket('RDMA')}`],
          ...['--connect', '127.54.3.1', '--transport', 'rdma', '--bind', '127.54.3.2'],
        );
        const memory = ['-f', '-v', '-U', chains.socket('nbdkit'), 'memory', GATEWAY_SIZE];
        const nbdkit = await chains.start('nbdkit', memory, /bound to|accepting|listen/);
        const all = [[server, gateway], [nbdkit]].map((processes, i) => ({
          name: throughs[i],
          reference: 'nbdkit',
          socket: chains.socket(throughs[i]),
          processes,
        }));
        await chains.warm(all, GATEWAY_MIB, 1);
        for (const op of DISK_OPS) {
          for (const chain of all) {
            const { iops, cpuUs } = await chains.measure(chain, { op, block: '8k', depth: 16 }, GATEWAY_MIB, seconds);
            add(name(op, chain.name), { value: iops, cpu: cpuUs });
          }
        }
      } finally {
        await chains.close();
      }
    },
  };
}

function isThere(/** @type {string} */ tool) {
  try {
    execFileSync(tool, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** The lab of a dashboard stops its traffic after half a minute without a look. */
const UNWATCHED_MS = 40_000;

/** Processor time of devices and dashboards that nobody uses, all at once; in percent of a core. @param {number} seconds @returns {Step} */
export function idleStep(seconds) {
  /** @type {readonly (readonly [name: string, ...command: string[]])[]} */
  const idlers = [
    ['device, mmsg/inline', IDLE_DEVICE, 'inline', 'mmsg', '127.54.4.1'],
    ['device, mmsg/worker', IDLE_DEVICE, 'worker', 'mmsg', '127.54.4.2'],
    ['device, shm/worker', IDLE_DEVICE, 'worker', 'shm', '127.54.4.3'],
    ['dashboard', MAIN, 'dashboard'],
    ['dashboard --attach', MAIN, 'dashboard', '--attach'],
  ];
  return {
    name: 'idle',
    samples: idlers.map(([name]) => `idle: ${name}`),
    once: true,
    run: async (add) => {
      const chains = new Chains();
      try {
        const children = [];
        for (const [, ...command] of idlers) {
          children.push(await chains.start(process.execPath, command, /Ctrl-C ends it/));
        }
        await sleep(UNWATCHED_MS);
        const before = children.map(({ pid }) => familyCpuNs(pid));
        const startMs = performance.now();
        await sleep(seconds * 1000);
        const wallNs = (performance.now() - startMs) * 1e6;
        for (const [i, [name]] of idlers.entries()) {
          add(`idle: ${name}`, { value: ((familyCpuNs(children[i].pid) - before[i]) / wallNs) * 100 });
        }
      } finally {
        await chains.close();
      }
    },
  };
}

/** Processor time of a process and of all that it has started and still lives. @param {number | undefined} pid @returns {number} */
function familyCpuNs(pid) {
  let sum = cpuNs(pid);
  for (const name of readdirSync('/proc')) {
    if (/^\d+$/.test(name) && parentOf(name) === pid) sum += familyCpuNs(Number(name));
  }
  return sum;
}

function parentOf(/** @type {string} */ pid) {
  try {
    return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')[1]);
  } catch {
    return undefined; // It has ended meanwhile.
  }
}
