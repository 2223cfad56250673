/** What happens to a cluster in a run: to its disks, its power and its network. Afterwards everything can heal. */

import { type RandomSource, randomInt, randomUnit } from '../../src/core/random.js';
import type { ExtentRecord } from '../../src/extents/catalogue.js';
import type { Cluster, Machine } from './cluster.js';

/** One disk lies; or any machine loses power; or disks are full, slow or fail. */
export const FAULT_KINDS = ['power', 'lies', 'space'] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

const NAMES = {
  power: ['power', 'power', 'kill', 'blackout'],
  lies: ['rot', 'rot', 'liar'],
  space: ['full', 'sync', 'slow'],
} as const;

export class Faults {
  readonly #cluster: Cluster;
  readonly #random: RandomSource;
  readonly #kind: FaultKind;

  constructor(cluster: Cluster, random: RandomSource, kind: FaultKind) {
    this.#cluster = cluster;
    this.#random = random;
    this.#kind = kind;
    if (kind === 'lies') cluster.machines[0].disk.lies = { lost: 0.02, misdirected: 0.02 };
    if (randomUnit(random) < 0.3) cluster.network.lossRate = 0.01;
  }

  #int(min: number, max: number): number {
    return randomInt(this.#random, min, max);
  }

  /** One fault, and its end. Resolves with its name. */
  async cause(): Promise<string> {
    const { network, machines } = this.#cluster;
    const machine = machines[this.#int(0, machines.length - 1)];
    const names = [...NAMES[this.#kind], 'cut', 'one way', 'manager', 'isolate'];
    const name = names[this.#int(0, names.length - 1)];
    const forMs = this.#int(5, 250);
    if (name === 'power' || name === 'kill') await this.#restart(machine, name === 'power', forMs);
    else if (name === 'blackout') await Promise.all(machines.map((one) => this.#restart(one, true, this.#int(1, 100))));
    else if (name === 'rot') machines[0].disk.rot();
    else if (name === 'liar') await this.#restart(machines[0], true, forMs);
    else if (name === 'full') machine.disk.capacityBytes = machine.disk.usedBytes + this.#int(0, 20_000);
    else if (name === 'sync') machine.disk.isSyncFailing = true;
    else if (name === 'slow') machine.disk.slowness = this.#int(20, 400);
    else if (name === 'manager') {
      this.#cluster.killManager();
      await this.#cluster.sleep(forMs);
      await this.#cluster.startManager();
    } else {
      const others = ['client', 'manager', ...machines.map((one) => one.name)].filter((one) => one !== machine.name);
      for (const one of name === 'isolate' ? others : [others[this.#int(0, others.length - 1)]]) {
        network.cut(machine.name, one);
        if (name !== 'one way') network.cut(one, machine.name);
      }
      await this.#cluster.sleep(forMs);
      network.heal();
    }
    return `${name} ${machine.name}`;
  }

  async #restart(machine: Machine, isPowerLost: boolean, downMs: number): Promise<void> {
    this.#cluster.stopNode(machine, isPowerLost);
    await this.#cluster.sleep(downMs);
    void this.#cluster.startNode(machine);
  }

  /** All faults end, and what failed is replaced. Resolves when every extent has its replicas, to false if that takes longer than `limitMs`. */
  async heal(limitMs: number): Promise<boolean> {
    const { network, machines, events } = this.#cluster;
    network.heal();
    network.lossRate = 0;
    if (this.#cluster.manager === undefined) await this.#cluster.startManager();
    for (const machine of machines) {
      const { disk } = machine;
      const isFailed = disk.isSyncFailing;
      disk.lies = { lost: 0, misdirected: 0 };
      disk.slowness = 1;
      disk.capacityBytes = Number.POSITIVE_INFINITY;
      disk.isSyncFailing = false;
      if (isFailed || machine.node === undefined || this.#kind === 'space') await this.#restart(machine, isFailed, 5);
    }
    await this.#cluster.sleep(100);
    const stopNs = events.nowNs + limitMs * 1e6;
    while (!(await this.#isWhole())) {
      if (events.nowNs > stopNs) return false;
      await this.#cluster.sleep(30);
    }
    return true;
  }

  async #isWhole(): Promise<boolean> {
    const isThere = (node: number) => this.#cluster.machineOf(node)?.node !== undefined;
    return (await this.#cluster.metadata.list('extent/')).every(({ value }) => {
      const { sealed, replicas } = JSON.parse(value) as ExtentRecord;
      return sealed === undefined || (replicas.length >= 3 && replicas.every(isThere));
    });
  }
}
