/**
 * Machines are cut off one after another and come back one after another, in another order: a fault that finds what neither one machine away nor a partition does ("swizzle-clogging" of
 * FoundationDB: Wilson, "Testing Distributed Systems w/ Deterministic Simulation", Strange Loop 2014). It comes in addition to the faults of a run, of which none takes a folder then, and draws from a random
 * stream of its own.
 */

import { type RandomSource, randomInt } from '../../../src/core/random.js';
import type { Cluster } from './cluster.js';

const ROUNDS = 3;

/** What has happened. */
export interface Swizzles {
  /** Machines that were cut off, in all rounds. */
  clogged: number;
  /** Most of them at a time. */
  most: number;
}

/** A few of them in the first second or so of a run. */
export function swizzle(cluster: Cluster): Swizzles {
  const random = cluster.seeds.stream('swizzle');
  const met: Swizzles = { clogged: 0, most: 0 };
  const clogged = new Set<string>();
  const { network } = cluster;
  network.isSwizzled = true;
  const send = network.send.bind(network);
  network.send = (from, to, deliver) => {
    const isLost = !network.isEnded && (clogged.has(from) || clogged.has(to));
    if (!isLost) send(from, to, deliver);
  };
  const pause = (max: number) => cluster.sleep(randomInt(random, 1, max));
  const course = async () => {
    for (let round = 0; round < ROUNDS && !network.isEnded; round++) {
      await pause(200);
      const machines = shuffled(cluster.machines, random).slice(0, randomInt(random, 2, cluster.machines.length));
      for (const { name } of machines) {
        clogged.add(name);
        met.clogged++;
        met.most = Math.max(met.most, clogged.size);
        await pause(30);
      }
      await pause(60);
      for (const { name } of shuffled(machines, random)) {
        clogged.delete(name);
        await pause(30);
      }
    }
  };
  void course();
  return met;
}

function shuffled<T>(of: readonly T[], random: RandomSource): T[] {
  const left = [...of];
  return of.map(() => left.splice(randomInt(random, 0, left.length - 1), 1)[0]);
}
