/**
 * All faults in turn, for 12 s or FAULT_SOAK_SECONDS (`npm run test:soak-hour`: an hour). Two pairs of processes exchange verified SENDs, WRITEs, READs
 * and atomics through a switch that loses, duplicates, reorders and corrupts packets; a disk is written and read over RDMA with the same faults. In turn,
 * the path vanishes for 2 and 5 s, comes back with another delay, and processes are stopped, blocked, killed and started again. After each fault all
 * traffic continues; at the end nothing was wrong, only killed servers cost connections, and the lasting processes have kept their size. In a longer run
 * two faults often overlap. Negative control: bytes changed at a server are found.
 */

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises'; // timer: how long faults last, and the pace of samples
import { afterEach, expect, it } from 'vitest';
import { SeededRandom } from '../../src/core/random.js';
import { NbdDevice } from '../../src/storage-rpc/nbd/nbd-device.js';
import { isBuilt, isLinux, Program } from '../e2e/executable.js';
import { page } from '../e2e/killed-gateway.js';
import { Dice } from '../support/dice.js';
import { eventually } from '../support/eventually.js';
import { freePort, freeUdpPorts } from '../support/free-port.js';
import { growthOf, type TimedValue } from '../support/growth.js';
import { seedOfRound } from '../support/rounds.js';

const SECONDS = Number(process.env['FAULT_SOAK_SECONDS'] ?? 12);
const IS_LONG = SECONDS >= 120;
const SEED = Number(process.env['FAULT_SOAK_SEED'] ?? seedOfRound(1));
const SAMPLE_MS = IS_LONG ? 2_000 : 100;
/** After a fault all traffic continues within this time, on a busy machine. */
const CONTINUES_MS = 60_000;
const LIMIT_MS = SECONDS * 1000 + 240_000;
/** Growth in the second half of a run: MiB, descriptors. */
const FLAT = { memory: 48, descriptors: 3 };
const DISK = { blocks: IS_LONG ? 4096 : 512, blockBytes: 4096, lanes: 4 };
const [STORAGE_SERVER, GATEWAY] = ['127.54.3.1', '127.54.3.2'];
const STALL_MS = 1_500;
const RULES = ['random=0.03', 'duplicate=0.02', 'reorder=0.02,16', 'corrupt=0.01'];
const STORAGE_RULES = RULES.map((rule) => rule.replace('0.0', '0.00')).join(';');

const closing: Array<() => unknown> = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** A process that is started again with the same arguments after it was killed. */
class Lasting {
  readonly #start: () => Promise<Program>;
  #program!: Program;
  #isAway = false;

  private constructor(start: () => Promise<Program>) {
    this.#start = start;
  }

  static async start(start: () => Promise<Program>): Promise<Lasting> {
    const lasting = new Lasting(start);
    lasting.#program = await start();
    closing.push(() => lasting.#program.kill('SIGKILL'));
    return lasting;
  }

  get program(): Program {
    return this.#program;
  }

  /** False: another fault has killed it already. */
  async killFor(ms: number): Promise<boolean> {
    if (this.#isAway) return false;
    this.#isAway = true;
    this.#program.kill('SIGKILL');
    await this.#program.ended();
    await delay(ms); // timer: the length of an outage
    this.#program = await this.#start();
    this.#isAway = false;
    return true;
  }

  async stopFor(ms: number): Promise<void> {
    this.#program.kill('SIGSTOP');
    await delay(ms); // timer: the length of a standstill
    this.#program.kill('SIGCONT');
  }
}

interface Report {
  readonly progress: number;
  readonly wrong: readonly string[];
  readonly failures: Readonly<Record<string, number>>;
  readonly connections: number;
}

const NO_REPORT: Report = { progress: 0, wrong: [], failures: {}, connections: 0 };

/** The last whole line that a process of mixed-traffic.mjs has printed; older output is dropped, for an hour of it would be large. */
function reportOf({ program }: Lasting): Report {
  const lines = program.stdout.trimEnd().split('\n');
  program.stdout = lines.slice(-4).join('\n') + (program.stdout.endsWith('\n') ? '\n' : '');
  const whole = program.stdout.endsWith('\n') ? lines : lines.slice(0, -1);
  const report = whole.at(-1);
  return report?.includes('"progress"') === true ? JSON.parse(report) : NO_REPORT;
}

/** Processes that exchange verified traffic through the switch. */
class Pair {
  readonly server: Lasting;
  readonly client: Lasting;
  /** What was wrong at servers that have been killed since. */
  readonly wrong: string[] = [];
  kills = 0;

  private constructor(server: Lasting, client: Lasting) {
    this.server = server;
    this.client = client;
  }

  static async start(net: string, ports: readonly Link[], engines: readonly string[]): Promise<Pair> {
    const tcp = await freePort();
    const start = (side: number, args: object, ready: RegExp) =>
      Lasting.start(async () => {
        const { local, remote } = ports[side];
        const terms = { ...args, address: `${net}.${side + 1}`, frame: { local, remote }, engine: engines[side] };
        const program = Program.fixture('mixed-traffic.mjs', JSON.stringify({ ...terms, stallMs: STALL_MS }));
        await program.writes('stdout', ready);
        return program;
      });
    const server = await start(0, { listen: tcp }, /listening/);
    return new Pair(server, await start(1, { connect: tcp }, /"progress":[1-9]/));
  }

  async killServer(ms: number): Promise<void> {
    this.wrong.push(...reportOf(this.server).wrong);
    if (await this.server.killFor(ms)) this.kills++;
  }

  summary(): { wrong: readonly string[]; connections: number; kills: number; failures: unknown; progress: number } {
    const [server, client] = [reportOf(this.server), reportOf(this.client)];
    const { connections, failures, progress } = client;
    const wrong = [...this.wrong, ...server.wrong, ...client.wrong];
    return { wrong, connections, kills: this.kills, failures, progress };
  }
}

interface Link {
  readonly local: string;
  readonly remote: string;
}

interface Done {
  progress: number;
  readonly wrong: string[];
}

/** Writes and reads a disk, four requests at a time, and checks each block; stops when `isOver`. */
async function useDisk(device: NbdDevice, dice: Dice, done: Done, isOver: () => boolean): Promise<void> {
  const stamps = new Uint32Array(DISK.blocks);
  const lanes = Array.from({ length: DISK.lanes }, async (_, lane) => {
    const read = Buffer.alloc(DISK.blockBytes);
    for (let n = 0; !isOver(); n++) {
      const place = lane + DISK.lanes * dice.int(0, DISK.blocks / DISK.lanes - 1);
      if (dice.chance(0.5)) {
        const stamp = stamps[place] + 1;
        await device.write(place * DISK.blockBytes, page(stamp), { fua: n % 16 === 0 });
        stamps[place] = stamp;
      } else {
        await device.read(place * DISK.blockBytes, read.length, read);
        if (!read.equals(page(stamps[place]))) done.wrong.push(`block ${place} of the disk, request ${n}`);
      }
      done.progress++;
      await delay(2); // timer: the pace of requests
    }
  });
  await Promise.all(lanes);
  const whole = Buffer.alloc(DISK.blocks * DISK.blockBytes);
  await device.read(0, whole.length, whole);
  for (let place = 0; place < DISK.blocks; place++) {
    const block = whole.subarray(place * DISK.blockBytes, (place + 1) * DISK.blockBytes);
    if (!block.equals(page(stamps[place]))) done.wrong.push(`block ${place} of the disk at the end`);
  }
}

function occupied(pid: number): { memory: number; descriptors: number } {
  const resident = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))!;
  return { memory: Number(resident[1]) / 1024, descriptors: readdirSync(`/proc/${pid}/fd`).length };
}

it.runIf(isBuilt && isLinux)(
  'all faults in turn: nothing is wrong, all traffic continues, memory stays flat; twin: changed bytes are found',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'rocev2-faults-'));
    closing.push(() => rmSync(folder, { recursive: true, force: true }));
    const dice = new Dice(new SeededRandom(SEED).stream('faults'));

    const udp = await freeUdpPorts(8);
    const links = [0, 1, 2, 3].map((i) => ({ local: `127.0.0.1:${udp[i]}`, remote: `127.0.0.1:${udp[4 + i]}` }));
    let paths = 0;
    const theSwitch = await Lasting.start(async () => {
      const ports = links.flatMap(({ local, remote }, i) => ['--port', `p${i}=${remote},${local}`]);
      // Each path has its delay: the first 0.
      const delayRule = paths % 3 === 0 ? [] : [`every=1,delay=${paths % 3}ms,300us`];
      const rules = [...RULES, ...delayRule].join(';');
      const program = Program.rocev2('switch', ...ports, '--faults', rules, '--seed', `${SEED + paths++}`);
      await program.writes('stderr', /switch port p3 on/);
      return program;
    });
    const killed = await Pair.start('198.18.1', links.slice(0, 2), ['inline', 'inline']);
    const kept = await Pair.start('198.18.2', links.slice(2), ['inline', 'worker']);

    const diskFile = ['--backend', `file:${folder}/disk`, '--size', `${DISK.blocks * DISK.blockBytes}`];
    const launch = (...args: string[]) =>
      Lasting.start(async () => {
        const program = Program.rocev2('disk', ...args, '--faults', STORAGE_RULES);
        await program.writes('stderr', /Ctrl-C ends it\n/);
        return program;
      });
    const storage = await launch('serve', ...diskFile, '--bind', STORAGE_SERVER);
    const socket = `${folder}/socket`;
    const reach = ['--connect', STORAGE_SERVER, '--bind', GATEWAY, '--hold-down', '10ms'];
    const gateway = await launch('nbd', ...reach, '--listen', `unix:${socket}`);
    const device = await NbdDevice.open(`nbd+unix:///?socket=${socket}`);
    closing.push(() => device.close());

    const endMs = performance.now() + SECONDS * 1000;
    let isOver = false;
    const disk: Done = { progress: 0, wrong: [] };
    const usingDisk = useDisk(device, dice, disk, () => isOver);
    usingDisk.catch((error) => disk.wrong.push(`the disk failed: ${error.message}`));

    const flows = {
      killed: () => reportOf(killed.client).progress,
      kept: () => reportOf(kept.client).progress,
      disk: () => disk.progress,
    };
    const lasting = { 'client 1': killed.client, 'server 2': kept.server, 'client 2': kept.client, gateway };
    const standstillMs = () => 1000 * dice.int(1, IS_LONG ? 8 : 1);
    const faults: Record<string, () => Promise<unknown>> = {
      'path away for 2 s, then another': () => theSwitch.killFor(2_000),
      'server killed': () => killed.killServer(dice.int(0, 500)),
      'server 2 stopped': () => kept.server.stopFor(standstillMs()),
      'event loop of client 1 blocked': async () => killed.client.program.kill('SIGUSR2'),
      'RDMA of the disk broken': async () => gateway.program.kill('SIGUSR2'),
      'storage server killed': () => storage.killFor(dice.int(0, 500)),
      'client 2 stopped': () => kept.client.stopFor(standstillMs()),
      'path away for 5 s, then another': () => theSwitch.killFor(5_000),
      'event loop of server 2 blocked': async () => kept.server.program.kill('SIGUSR2'),
      'switch stopped': () => theSwitch.stopFor(standstillMs() / 2),
      'gateway stopped': () => gateway.stopFor(standstillMs()),
      'storage server stopped': () => storage.stopFor(standstillMs()),
    };
    const names = Object.keys(faults);
    const times: Record<string, { count: number; longestMs: number }> = {};
    const faulting = (async () => {
      for (let turn = 0; performance.now() < endMs; turn++) {
        // In a short run the faults of a round.
        const first = turn < names.length ? names[(turn + 4 * SEED) % names.length] : dice.pick(names);
        const both = IS_LONG && dice.chance(0.4) ? [first, dice.pick(names)] : [first];
        await Promise.all(both.map((fault) => faults[fault]()));
        const name = both.length > 1 ? 'two at once' : first;
        const startMs = performance.now();
        const at = Object.entries(flows).map(([flow, progress]) => ({ flow, progress, from: progress() }));
        for (const { flow, progress, from } of at)
          await eventually(() => progress() > from + 20 || progress() < from, { limitMs: CONTINUES_MS }).catch(() => {
            throw new Error(`${flow} does not continue after '${both.join("' and '")}' (turn ${turn})`);
          });
        const ms = Math.round(performance.now() - startMs);
        const { count, longestMs } = times[name] ?? { count: 0, longestMs: 0 };
        times[name] = { count: count + 1, longestMs: Math.max(longestMs, ms) };
      }
    })();
    faulting.catch(() => {}); // Awaited below.

    const samples = new Map<string, TimedValue[]>();
    let isFaulting = true;
    void faulting.then(
      () => (isFaulting = false),
      () => (isFaulting = false),
    );
    while (isFaulting) {
      for (const [name, { program }] of Object.entries(lasting))
        for (const [what, value] of Object.entries(occupied(program.process.pid!))) {
          const series = samples.get(`${name} ${what}`) ?? [];
          samples.set(`${name} ${what}`, [...series, { at: performance.now(), value }]);
        }
      if (IS_LONG && samples.get('gateway memory')!.length % 150 === 0)
        console.log(JSON.stringify({ killed: killed.summary(), kept: kept.summary(), disk: disk.progress }));
      await delay(SAMPLE_MS); // timer: the pace of samples
    }
    isOver = true;
    await faulting;
    await usingDisk;
    const growth = Object.fromEntries(
      [...samples].map(([name, series]) => [name, Number(growthOf(series).toFixed(1))]),
    );
    const last = Object.fromEntries([...samples].map(([name, series]) => [name, Math.round(series.at(-1)!.value)]));
    const pairs = { killed: killed.summary(), kept: kept.summary() };
    console.log(JSON.stringify({ seed: SEED, times, pairs, disk, paths, growth, last }, undefined, 1));

    expect(disk.wrong).toEqual([]);
    for (const { wrong, connections, kills } of Object.values(pairs)) {
      expect(wrong).toEqual([]);
      // A connection ends when its server is killed, and for no other reason.
      expect(connections).toBe(1 + kills);
    }
    for (const program of [killed.server, killed.client, kept.server, kept.client]) {
      expect(program.program.stderr).toBe('');
      expect(program.program.process.exitCode).toBeNull();
    }
    expect(Object.keys(times).length).toBeGreaterThan(IS_LONG ? names.length : 1);
    for (const [name, value] of Object.entries(growth))
      expect(value, name).toBeLessThan(FLAT[name.split(' ').at(-1) as keyof typeof FLAT]);
    kept.server.program.kill('SIGHUP');
    await eventually(() => kept.summary().wrong.length > 0, { limitMs: CONTINUES_MS });
  },
  LIMIT_MS,
);
