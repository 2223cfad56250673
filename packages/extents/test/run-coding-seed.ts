/** A run of a cluster that codes what is sealed, by its seed: Reed-Solomon on ten nodes, or a Local Reconstruction Code on seventeen. */

import type { Cluster } from './cluster.js';
import { runSeed, type Verdict } from './run-seed.js';

/** `twist` plants a bug. */
export function runCodingSeed(seed: number, twist?: (cluster: Cluster) => void): Promise<Verdict> {
  const options =
    seed % 4 === 3 ? ({ nodes: 17, code: 'lrc-12-2-2' } as const) : ({ nodes: 10, code: 'rs-6-3' } as const);
  return runSeed(seed, twist, options);
}
