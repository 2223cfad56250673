/** How much strangers may hold of a connection manager. Each bound has an outcome that is counted in `CmCounters`. */

import type { Pace } from '../core/token-bucket.js';

/** Bounds of a connection manager. All are whole numbers from 1 on. */
export interface CmLimits {
  /** Endpoints at a time, those in TIMEWAIT included. Beyond: `crowdedOut`, else REJ 3. */
  readonly endpoints: number;
  /** Requests that are not connections yet, of all peers. Beyond: `crowdedOut`. */
  readonly halfOpen: number;
  /** ... and of one address. Beyond: `crowdedOut`. */
  readonly halfOpenPerAddress: number;
  /** Connections that peers of one address have made. Beyond: REJ 3. */
  readonly connectionsPerAddress: number;
  /** Endpoints in TIMEWAIT of one address. Beyond: the oldest is over, counted in `timewaitCut`. */
  readonly timewaitPerAddress: number;
  /** How long a reply waits for its RTU, in ms. An MRA may prolong it once, by 69 s at most. Beyond: ERR_ROCE_CONNECT, counted in `expired`. */
  readonly halfOpenMs: number;
}

/** What is not said otherwise. */
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
