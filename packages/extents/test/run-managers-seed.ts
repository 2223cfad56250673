/** A run of a cluster with three managers over a store that they share, by its seed. */

import type { Cluster, ClusterOptions } from './cluster.js';
import { runSeed, type Verdict } from './run-seed.js';

/** `twist` plants a bug. */
export function runManagersSeed(
  seed: number,
  twist?: (cluster: Cluster) => void,
  options: ClusterOptions = {},
): Promise<Verdict> {
  return runSeed(seed, twist, { managers: 3, ...options });
}
