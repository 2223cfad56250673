/** What happens to a cluster in a run: to its disks, its power, its network and its managers. Afterwards everything can heal. */

import { type RandomSource, randomInt, randomUnit } from '../../../src/core/random.js';
import { erasureCode } from '../src/coding/erasure-code.js';
import type { ExtentRecord } from '../src/metadata-schema.js';
import type { Cluster, Machine, ManagerProcess } from './cluster.js';
import type { SimDisk } from './sim-disk.js';

/** Any machine loses power; or one disk lies, and nobody loses power; or disks are full, slow or fail. */
export const FAULT_KINDS = ['power', 'lies', 'space'] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

const NAMES = {
  power: ['power', 'power', 'kill', 'blackout'],
  lies: ['rot', 'rot', 'liar'],
  space: ['full', 'sync', 'slow'],
} as const;
/** The same where folders are lost, or come back as they once were. */
const LOSSES = ['power', 'power', 'kill', 'old', 'empty', 'blackout'] as const;
const NETWORK = ['cut', 'one way', 'manager', 'isolate'] as const;
/** Of several managers. */
const SEVERAL = ['leader', 'leader cut', 'leader deaf', 'late', 'clock', 'clock'] as const;

type FaultName = (typeof NAMES)[FaultKind][number] | (typeof LOSSES | typeof NETWORK | typeof SEVERAL)[number];

/** One of them. */
export interface Fault {
  readonly name: FaultName;
  /** Where it happens, unless it is somewhere else by its name. */
  readonly machine: Machine;
}

function disksOf({ disk, journal }: Machine): SimDisk[] {
  return journal === undefined ? [disk] : [disk, journal];
}

/** The faults of one run. */
export class Faults {
  readonly #cluster: Cluster;
  readonly #random: RandomSource;
  readonly #kind: FaultKind;
  readonly #names: readonly FaultName[];

  /** What lasts for the whole run begins now. */
  constructor(
    cluster: Cluster,
    random: RandomSource,
    { kind, losesDisks = false }: { readonly kind: FaultKind; readonly losesDisks?: boolean },
  ) {
    this.#cluster = cluster;
    this.#random = random;
    this.#kind = kind;
    const several = cluster.managers.length === 0 ? [] : SEVERAL;
    this.#names = [...(kind === 'power' && losesDisks ? LOSSES : NAMES[kind]), ...NETWORK, ...several];
    if (kind === 'lies') for (const disk of disksOf(cluster.machines[0])) disk.lies = { lost: 0.02, misdirected: 0.02 };
    if (randomUnit(random) < 0.3) cluster.network.lossRate = 0.01;
  }

  #int(min: number, max: number): number {
    return randomInt(this.#random, min, max);
  }

  #one<T>(of: readonly T[]): T {
    return of[this.#int(0, of.length - 1)];
  }

  /** Draws a fault. */
  next(): Fault {
    const machine = this.#one(this.#cluster.machines);
    return { machine, name: this.#one(this.#names) };
  }

  /** Draws how long one lasts, milliseconds. */
  duration(): number {
    return this.#int(5, 250);
  }

  /** Draws somebody else, from whom a machine is cut off. */
  other(machine: Machine): string {
    return this.#one(this.#others(machine));
  }

  #others(machine: Machine): string[] {
    const { machines, managers } = this.#cluster;
    const servers = managers.length === 0 ? ['manager'] : managers.map((one) => one.name);
    return ['client', ...servers, ...machines.map((one) => one.name)].filter((one) => one !== machine.name);
  }

  /** A fault, and its end. `other`: from whom it cuts off a machine, if it is one that does. */
  async cause({ name, machine }: Fault, forMs: number, other: () => string): Promise<void> {
    const { network, machines, managers } = this.#cluster;
    const { disk, journal } = machine;
    if (name === 'power' || name === 'kill') await this.#restart(machine, name === 'power', forMs);
    else if (name === 'blackout') await Promise.all(machines.map((one) => this.#restart(one, true, this.#int(1, 100))));
    else if (name === 'old') {
      const images = [disk, journal].map((one) => one?.image());
      await this.#cluster.sleep(60);
      await this.#loseDisk(machine, () => {
        for (const [k, one] of [disk, journal].entries()) one?.restore(images[k]!);
      });
    } else if (name === 'empty') await this.#loseDisk(machine, () => this.#cluster.emptyDisks(machine));
    else if (name === 'rot') this.#either(machines[0]).rot();
    else if (name === 'liar') await this.#restart(machines[0], true, forMs);
    else if (name === 'full') disk.capacityBytes = disk.usedBytes + this.#int(0, 20_000);
    else if (name === 'sync') this.#either(machine).isSyncFailing = true;
    else if (name === 'slow') this.#either(machine).slowness = this.#int(20, 400);
    else if (name === 'leader') await this.#restartManager(this.#leader, forMs);
    else if (name === 'manager' && managers.length > 0) await this.#restartManager(this.#one(managers), forMs);
    else if (name === 'manager') {
      this.#cluster.killManager();
      await this.#cluster.sleep(forMs);
      await this.#cluster.startManager();
    } else if (name === 'late') await this.#delayTransactions(forMs);
    else if (name === 'clock') await this.#stopClock(forMs);
    else {
      if (name === 'leader cut' || name === 'leader deaf') {
        const leader = this.#leader.name;
        network.cut('store', leader);
        if (name === 'leader cut') network.cut(leader, 'store');
      } else
        for (const one of name === 'isolate' ? this.#others(machine) : [other()]) {
          network.cut(machine.name, one);
          if (name !== 'one way') network.cut(one, machine.name);
        }
      await this.#cluster.sleep(forMs);
      network.heal();
    }
  }

  /** The disk of a machine, or that of its journal. */
  #either({ disk, journal }: Machine): SimDisk {
    return journal === undefined || this.#int(0, 1) === 0 ? disk : journal;
  }

  get #leader(): ManagerProcess {
    return this.#cluster.leading ?? this.#cluster.managers[0];
  }

  async #delayTransactions(forMs: number): Promise<void> {
    const { store } = this.#cluster;
    store.late = { rate: 0.3, ms: this.#int(20, 120) };
    await this.#cluster.sleep(forMs);
    store.late = { rate: 0, ms: 0 };
  }

  /** The lease of the leader ends, and it does not know; those who ask it, or the others, find out who leads now, while transactions are under way. */
  async #stopClock(forMs: number): Promise<void> {
    const { network, machines, store } = this.#cluster;
    const leader = this.#leader;
    leader.clock.stop();
    store.isSilent = true;
    await this.#cluster.sleep(this.#int(100, 160));
    store.late = { rate: 0.8, ms: this.#int(10, 80) };
    const moving = this.#one([['client'], machines.map((one) => one.name)]);
    for (const one of moving) network.cut(one, leader.name);
    await this.#cluster.sleep(200 + forMs);
    network.heal();
    store.late = { rate: 0, ms: 0 };
    store.isSilent = false;
    leader.clock.goOn();
  }

  async #restartManager(process: ManagerProcess, downMs: number): Promise<void> {
    this.#cluster.killCandidate(process);
    await this.#cluster.sleep(downMs);
    this.#cluster.startCandidate(process);
  }

  async #restart(machine: Machine, isPowerLost: boolean, downMs: number): Promise<void> {
    this.#cluster.stopNode(machine, isPowerLost);
    await this.#cluster.sleep(downMs);
    void this.#cluster.startNode(machine);
  }

  /** Takes the data of one disk, if every extent is on two others that are up, or lacks no more than one other fragment. */
  async #loseDisk(machine: Machine, lose: () => void): Promise<void> {
    const extents = await this.#cluster.metadata.list('extent/');
    const isSafe = extents.every(({ value }) => {
      const { replicas, coded } = JSON.parse(value) as ExtentRecord;
      const isElsewhere = (node: number) =>
        node !== machine.number && this.#cluster.machineOf(node)?.node !== undefined;
      if (coded === undefined) return replicas.filter(isElsewhere).length >= 2;
      return coded.fragments.filter(({ node }) => isElsewhere(node)).length >= erasureCode(coded.code).total - 2;
    });
    // Whoever has an old folder, and alone can be reached, cannot be known for what it is.
    if (!isSafe || this.#cluster.network.isSwizzled) return;
    this.#cluster.stopNode(machine, false);
    lose();
    await this.#cluster.sleep(20);
    void this.#cluster.startNode(machine);
  }

  /** All faults end, and what failed is replaced. */
  async end(): Promise<void> {
    const { network, machines, managers } = this.#cluster;
    network.end();
    if (managers.length === 0 && this.#cluster.manager === undefined) await this.#cluster.startManager();
    for (const process of managers) if (process.candidate === undefined) this.#cluster.startCandidate(process);
    for (const machine of machines) {
      const isFailed = disksOf(machine).some((disk) => disk.isSyncFailing);
      for (const disk of disksOf(machine)) {
        disk.lies = { lost: 0, misdirected: 0 };
        disk.slowness = 1;
        disk.capacityBytes = Number.POSITIVE_INFINITY;
        disk.isSyncFailing = false;
      }
      if (isFailed || machine.node === undefined || this.#kind === 'space') await this.#restart(machine, isFailed, 5);
    }
    await this.#cluster.sleep(100);
  }

  /** Whether this becomes true while so much time passes. */
  async becomes(isSo: () => Promise<boolean>, limitMs: number): Promise<boolean> {
    const { events } = this.#cluster;
    const stopNs = events.nowNs + limitMs * 1e6;
    while (!(await isSo()) && events.nowNs < stopNs) await this.#cluster.sleep(30);
    return isSo();
  }
}
