/**
 * A cluster of processes under load for 36 s, or CLUSTER_SOAK_SECONDS: a disk over it is overwritten, read, trimmed and cleaned, while a node is killed again and again, and another one loses
 * its folder and is filled anew. What goes on living keeps its size: the memory and the descriptors of each process, and the bytes that all folders hold. A process beside them leaks
 * all three on purpose, and the same judge finds it.
 */

import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises'; // timer: how long the soak lasts, and its pace
import { afterEach, expect, it } from 'vitest';
import { openExtents } from '../../packages/extents/src/index.js';
import { openDevice } from '../../src/verbs/open-device.js';
import { DiskCluster } from '../disk/support/cluster.js';
import { isBuilt, isLinux, Program } from '../e2e/executable.js';
import { eventually } from '../support/eventually.js';
import { growthOf } from '../support/growth.js';
import { isTurn, ROUNDS } from '../support/rounds.js';

const MIB = 1 << 20;
const SECONDS = Number(process.env['CLUSTER_SOAK_SECONDS'] ?? 36);
const SAMPLE_MS = 250;
/** Between two losses, when what was lost is back. */
const LOSS_MS = 5_000;
const LIMIT_MS = SECONDS * 1000 + 120_000;
const NODES = 5;
/** They live as long as the cluster. */
const LASTING = ['manager', 'node1', 'node2', 'node3'];
/** One is killed and comes back with its folder, one without. */
const [KILLED, EMPTIED] = ['node4', 'node5'];
/** Small, so that cleaning begins within seconds. */
const [DISK, EXTENT] = ['8MiB', '1MiB'];
/** What may come in the second half: MiB of memory, descriptors, MiB in folders. */
const FLAT = { memory: 40, descriptors: 3, stored: 20 };
/** What the leaking process does over the whole run, in steps; half of it has to be found. */
const LEAK = { steps: 100, memory: 240 * MIB, stored: 25 * MIB };

const closing: Array<() => unknown> = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** MiB, and descriptors: a node has one for each file of its folder, which counts as space; one of a file that is deleted is a leak. */
function occupied(pid: number, folder: string): { memory: number; descriptors: number } {
  const resident = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))!;
  const descriptors = readdirSync(`/proc/${pid}/fd`).filter((number) => !isFileIn(folder, `/proc/${pid}/fd/${number}`));
  return { memory: Number(resident[1]) / 1024, descriptors: descriptors.length };
}

function isFileIn(folder: string, descriptor: string): boolean {
  try {
    const path = readlinkSync(descriptor);
    return path.startsWith(`${folder}/`) && !path.endsWith(' (deleted)');
  } catch {
    return true; // Closed since it was listed.
  }
}

/** Bytes of all files; one that goes while it is looked at has none. */
function storedBytes(folder: string): number {
  let sum = 0;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    sum += statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size ?? 0;
  }
  return sum;
}

class Samples {
  readonly #series = new Map<string, Array<{ at: number; value: number }>>();

  add(name: string, value: number): void {
    const series = this.#series.get(name) ?? [];
    this.#series.set(name, series);
    series.push({ at: performance.now(), value });
  }

  /** Growth of each in the second half, to a tenth; with the last value. */
  growth(): Record<string, number> {
    return Object.fromEntries([...this.#series].map(([name, series]) => [name, Number(growthOf(series).toFixed(1))]));
  }

  last(): Record<string, number> {
    return Object.fromEntries([...this.#series].map(([name, series]) => [name, Math.round(series.at(-1)!.value)]));
  }
}

it.runIf(isBuilt && isLinux && isTurn(2, ROUNDS))(
  'a cluster under load, with losses and repairs, keeps memory, descriptors and space flat; twin: one that leaks is found',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'rocev2-soak-'));
    closing.push(() => rmSync(folder, { recursive: true, force: true }));
    const upFlags = ['--keep-deleted', '0s', '--nodes', `${NODES}`, '--extent-size', EXTENT];
    const cluster = await DiskCluster.start(folder, { size: DISK, upFlags, restartLimitMs: LIMIT_MS });
    closing.push(() => cluster.end());
    const device = await openDevice({ address: '127.0.0.1', udpPort: 0 });
    closing.push(() => device.close());
    const client = await openExtents({ device, manager: cluster.manager });
    closing.push(() => client.close());
    const isWhole = async () => {
      const { nodes, extents } = await client.status();
      const up = nodes.filter(({ state }) => state === 'up').length;
      return up === NODES && extents.underReplicated === 0 && extents.copying === 0;
    };
    const whole = () => eventually(() => isWhole().catch(() => false), { limitMs: LIMIT_MS, everyMs: 200 });

    const { manager } = cluster;
    const owner = Program.fixture('disk-load.mjs', JSON.stringify({ manager, disk: 'vol', seconds: SECONDS }));
    closing.push(() => owner.kill('SIGKILL'));
    await owner.writes('stdout', /steady/); // From here on the log is as long as it ever gets.
    const leaking = Program.fixture(
      'leaking-appender.mjs',
      JSON.stringify({
        manager,
        stream: 'leak',
        everyMs: (SECONDS * 1000) / LEAK.steps,
        recordBytes: LEAK.stored / LEAK.steps,
        heldBytes: LEAK.memory / LEAK.steps,
      }),
    );
    closing.push(() => leaking.kill('SIGKILL'));

    const endMs = performance.now() + SECONDS * 1000;
    const isOver = () => performance.now() > endMs;
    const done = { kills: 0, emptied: 0 };
    const losing = (async () => {
      for (let turn = 0; !isOver(); turn++) {
        await delay(LOSS_MS); // timer: the pace of losses
        await whole();
        if (turn % 2 === 0) await cluster.kill(KILLED);
        else await cluster.kill(EMPTIED, () => rmSync(join(folder, EMPTIED), { recursive: true }));
        done[turn % 2 === 0 ? 'kills' : 'emptied']++;
      }
    })();
    const samples = new Samples();
    const leaks = new Samples();
    const pids = new Map(LASTING.map((name) => [name, cluster.processOf(name)]));
    pids.set('owner', owner.process.pid!);
    while (!isOver()) {
      for (const [name, pid] of pids)
        for (const [what, value] of Object.entries(occupied(pid, folder))) samples.add(`${name} ${what}`, value);
      for (const [what, value] of Object.entries(occupied(leaking.process.pid!, folder))) leaks.add(what, value);
      const stored = storedBytes(folder) / MIB;
      leaks.add('stored', stored);
      const leaked = Number(leaking.stdout.trim().split('\n').at(-1)) / MIB;
      samples.add('stored', stored - 3 * leaked);
      await delay(SAMPLE_MS); // timer: the pace of samples
    }
    expect(await owner.ended(), owner.stderr).toBe(0);
    await losing;
    await whole();
    const work = JSON.parse(owner.stdout.trim().split('\n').at(-1)!);
    const { counters, extents } = await client.status();
    const [growth, leakGrowth] = [samples.growth(), leaks.growth()];
    console.log(JSON.stringify({ ...done, work, counters, growth, last: samples.last(), leaking: leakGrowth }));

    expect(work.wrong).toBe(0);
    expect(work.freed).toBeGreaterThan(3); // The cleaner has been at work.
    expect(done.kills).toBeGreaterThan(0);
    expect(done.emptied).toBeGreaterThan(0);
    expect(counters.copies).toBeGreaterThan(0);
    expect(extents.unavailable).toBe(0);
    for (const [name, value] of Object.entries(growth))
      expect(value, name).toBeLessThan(FLAT[name.split(' ').at(-1) as keyof typeof FLAT]);
    for (const [name, value] of Object.entries(leakGrowth))
      expect(value, `the leak of ${name}`).toBeGreaterThan(FLAT[name as keyof typeof FLAT]);
  },
  LIMIT_MS,
);
