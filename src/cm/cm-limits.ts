/** Bounds on what peers may occupy in a connection manager. `CmCounters` counts the effects of each. */

import type { Pace } from '../core/token-bucket.js';

/** Bounds of a connection manager. All are whole numbers of at least 1. */
export interface CmLimits {
  /** Most endpoints, including those in TIMEWAIT. Beyond: `crowdedOut`, else REJ 3. */
  readonly endpoints: number;
  /** Most pending requests of all peers. Beyond: `crowdedOut`. */
  readonly halfOpen: number;
  /** Most pending requests of one address. Beyond: `crowdedOut`. */
  readonly halfOpenPerAddress: number;
  /** Most connections from one address. Beyond: REJ 3. */
  readonly connectionsPerAddress: number;
  /** Most endpoints in TIMEWAIT of one address. Beyond: the oldest ends, counted in `timewaitCut`. */
  readonly timewaitPerAddress: number;
  /** How long a REP waits for its RTU, in ms. An MRA can extend it once, by at most 69 s. Beyond: ERR_ROCE_CONNECT, counted in `expired`. */
  readonly halfOpenMs: number;
}

/** Default limits. */
export const LIMITS_DEFAULT: CmLimits = {
  endpoints: 4096,
  halfOpen: 512,
  halfOpenPerAddress: 128,
  connectionsPerAddress: 1024,
  timewaitPerAddress: 512,
  halfOpenMs: 20_000,
};

/** Peers whose address is remembered as proved; the one longest unheard is forgotten first. */
export const PROVED_PEERS_MAX = 4096;

/** Datagrams that peers which have proved nothing get unasked (repetitions, goodbyes), all together: at once, and a second. */
export const UNASKED_PACE: Pace = { burst: 64, perSecond: 16 };
