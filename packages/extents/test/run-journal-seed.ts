/** A run of a cluster whose nodes have journals, by its seed. One in five codes what is sealed, and one in five has three managers. */

import type { Cluster } from './cluster.js';
import { runSeed, type Verdict } from './run-seed.js';

/** So small that one write in many goes around it, or ones that wait for a checkpoint now and then, or never. */
const JOURNAL_BYTES = [24 << 10, 64 << 10, 512 << 10] as const;

/** `twist` plants a bug. */
export function runJournalSeed(seed: number, twist?: (cluster: Cluster) => void): Promise<Verdict> {
  const journalBytes = JOURNAL_BYTES[Math.floor(seed / 3) % JOURNAL_BYTES.length];
  if (seed % 5 === 3) return runSeed(seed, twist, { journalBytes, nodes: 10, code: 'rs-6-3' });
  if (seed % 5 === 4) return runSeed(seed, twist, { journalBytes, managers: 3 });
  return runSeed(seed, twist, { journalBytes });
}
