/** A peer whose process ends is noticed at once by its connection; these are for those that are silent. */

import type { CandidateTiming } from '../candidate.js';
import type { NodeTiming } from '../extent-node.js';
import type { ReaderTiming } from '../extent-reader.js';
import type { ManagerTiming } from '../manager-state.js';
import type { WriterTiming } from '../stream-writer.js';

export const MANAGER_TIMING: ManagerTiming = {
  callMs: 5_000,
  copyMs: 300_000,
  downMs: 5_000,
  forgetMs: 3_600_000,
  repairMs: 500,
  codeAfterMs: 60_000,
};
/** The lease is of whole seconds, because those of etcd are. */
export const CANDIDATE_TIMING: CandidateTiming = { leaderMs: 5_000, retryMs: 500 };
export const NODE_TIMING: NodeTiming = {
  callMs: 5_000,
  hedgeMs: 500,
  reportMs: 500,
  scrubMs: 10_000,
  keepDeletedMs: 3_600_000,
  checkpointMs: 10_000,
};
/** They wait longer for a primary than it waits for its secondaries: its answer names the silent ones. */
export const CLIENT_TIMING: WriterTiming & ReaderTiming = {
  callMs: 12_000,
  retryMs: 200,
  leaseMs: 30_000,
  renewMs: 2_000,
  hedgeMs: 200,
};
export const FOLLOW_MS = 250;
export const SEARCH_MS = 1_000;
